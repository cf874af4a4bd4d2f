"""kill -9 at each step of every command that changes sessions: nothing is lost, and the command can be run again."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mino.sessions.compact import is_summary
from tests.homes import completed, make_home, numbered, questions, saved_in, session_of, state_of, turns_of, write
from tests.replies import completed as reply
from tests.server import ScriptedServer
from tests.system.program import ROOT

LIVE = completed(("现场的问题", "现场的回答 🙂"), ("live question", "live answer"))
EARLIER = completed(("earlier question", "earlier answer"))
OTHER = completed(("other question", "other answer"))
SECRET = completed(("forget 忘记我", "forgotten 回答"))

Check = Callable[[Path], None]


def crash(tmp_path: Path, base: Path, words: Sequence[str], url: str = "") -> tuple[Path, list[tuple[Path, Path, int]]]:
    """Kill `mino` at each of its steps: the home after a whole run; the killed ones, run again, with its status.

    It asks the server at `url`.
    """
    place = tmp_path / "crashed"
    place.mkdir()
    command = [sys.executable, "-m", "tests.system.crashing", str(base), str(place), *words]
    environ = {"PYTHONPATH": str(ROOT), "OPENAI_BASE_URL": url}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    *statuses, last = (int(line) for line in done.stdout.split())
    output = place / "output"
    assert last == 0, output.read_text()
    assert "Traceback" not in output.read_text()
    assert len(statuses) > 1
    killed = [(place / str(number), place / f"{number}-again", status) for number, status in enumerate(statuses, 1)]
    return place / "whole", killed


def check_all_clean(home: Path) -> None:
    """One session file; it and every saved one is whole."""
    assert state_of(session_of(home)) == "clean"
    for name, content in saved_in(home).items():
        assert name.startswith(".mino-") or state_of(content) == "clean", name


def kept_in(home: Path) -> set[bytes]:
    """The content of every saved session, under whatever name."""
    return {content for name, content in saved_in(home).items() if not name.startswith(".mino-")}


UNDONE = b"".join(LIVE.splitlines(keepends=True)[:3])


@pytest.mark.parametrize(
    ("words", "current", "new"),
    [
        (["session", "load", "other"], None, OTHER),
        (["session", "load", "other"], "work", OTHER),
        (["session", "load", "work"], "work", EARLIER),
        (["session", "new"], None, b""),
        (["session", "new"], "other", b""),
        (["session", "save", "other"], None, LIVE),
        (["session", "save", "fresh"], None, LIVE),
        (["undo"], None, UNDONE),
    ],
)
def test_the_session_is_the_old_or_the_new_one_and_nothing_saved_is_lost(
    tmp_path: Path, words: list[str], current: str | None, new: bytes
) -> None:
    base = make_home(tmp_path / "base", LIVE, work=EARLIER, other=OTHER)
    if current:
        write(base / "current", f"{current}\n".encode())

    whole, killed = crash(tmp_path, base, words)

    for home, again, status in killed:
        check_all_clean(home)
        assert session_of(home) in (LIVE, new)
        assert kept_in(home) >= {EARLIER, OTHER}
        assert session_of(home) == LIVE or LIVE in kept_in(home)
        # Which conversation is current changes last.
        assert current_in(home) in (current, None)
        assert current_in(home) == current or session_of(home) == new
        assert status == 0
        # What was undone is undone: asked once more, it takes the next turn out.
        check_finished(again, b"" if words == ["undo"] and session_of(home) == new else new)
        assert current_in(again) is None
    check_finished(whole, new)
    assert saved_in(whole).keys() >= {"work", "other"}


def current_in(home: Path) -> str | None:
    """The name in `current`."""
    current = home / "current"
    return current.read_text().removesuffix("\n") if current.exists() else None


def check_finished(home: Path, new: bytes) -> None:
    """The command has done all it should."""
    check_all_clean(home)
    assert session_of(home) == new
    assert kept_in(home) >= {EARLIER, OTHER, LIVE}
    assert not list(home.rglob(".mino-*"))


TORN = EARLIER + '{"v":1,"seq":4,"type":"user_message","text":"半句'.encode()[:-1]


@pytest.mark.parametrize("before", [EARLIER, TORN, None])
def test_a_named_conversation_that_is_asked_keeps_every_turn(tmp_path: Path, before: bytes | None) -> None:
    there = {"other": OTHER} if before is None else {"other": OTHER, "工作": before}
    base = make_home(tmp_path / "base", LIVE, **there)
    write(base / "current", b"other\n")

    with ScriptedServer(always=reply("回答 🙂")) as server:
        whole, killed = crash(tmp_path, base, ["ask", "--session", "工作", "新的问题"], server.url)

    earlier = ["earlier question"] if before else []
    for home, again, status in killed:
        for each in (home, again):
            assert (session_of(each), saved_in(each)["other"], current_in(each)) == (LIVE, OTHER, "other")
        assert state_of(saved_in(home).get("工作", b"")) != "invalid"
        assert saved_in(home).get("工作", EARLIER).startswith(EARLIER if before else b"")
        turns = turns_of(saved_in(again)["工作"])
        # The killed one asked too, if it came so far: its turn is there, whole or ended as interrupted.
        assert [turn.user for turn in turns] in ([*earlier, "新的问题"], [*earlier, "新的问题", "新的问题"])
        assert {turn.status for turn in turns[:-1]} <= {"completed", "interrupted"} and turns[-1].status == "completed"
        assert status == 0 and not list(again.rglob(".mino-*"))
        copies = [content for name, content in saved_in(again).items() if "-recovery-" in name]
        assert before != TORN or TORN in copies
        assert not (again / "saved" / "工作.lock").read_bytes()
    assert questions(saved_in(whole)["工作"]) == [*earlier, "新的问题"]


@pytest.mark.parametrize("current", [None, "work"])
def test_a_conversation_is_compacted_whole_or_not_at_all(tmp_path: Path, current: str | None) -> None:
    base = make_home(tmp_path / "base", LIVE, work=LIVE if current else EARLIER, other=OTHER)
    if current:
        write(base / "current", b"work\n")
        write(next((base / "sessions").glob("*.jsonl")), EARLIER)

    with ScriptedServer(always=reply("总结 📝")) as server:
        _, killed = crash(tmp_path, base, ["history", "compact", "--keep", "1", "--base-url", server.url])

    def content(home: Path) -> bytes:
        return saved_in(home)["work"] if current else session_of(home)

    replaced = 0
    for home, again, status in killed:
        check_all_clean(home)
        if content(home) != LIVE:
            replaced += 1
            check_compacted(content(home))
            assert list(saved_in(home).values()).count(LIVE) == 1
        assert status == 0
        check_compacted(content(again))
        assert list(saved_in(again).values()).count(LIVE) == 1  # a copy that is there is not made again
        assert EARLIER in (session_of(again), saved_in(again)["work"]) and saved_in(again)["other"] == OTHER
        assert not list(again.rglob(".mino-*"))
    assert 0 < replaced < len(killed)


def check_compacted(content: bytes) -> None:
    """It has a summary of the first turn of LIVE, and the second one as it was."""
    summary, kept = turns_of(content)
    assert (is_summary(summary.user), summary.assistant) == (True, "总结 📝")
    last = turns_of(LIVE)[1]
    assert (kept.turn_id, kept.user, kept.assistant) == (last.turn_id, last.user, last.assistant)


@pytest.mark.parametrize("words", [["session", "open", "other"], ["session", "open", "fresh"], ["session", "open"]])
def test_open_makes_one_that_is_there_current(tmp_path: Path, words: list[str]) -> None:
    base = make_home(tmp_path / "base", LIVE, work=EARLIER, other=OTHER)
    write(base / "current", b"work\n")

    _, killed = crash(tmp_path, base, words)

    for home, again, status in killed:
        for each in (home, again):
            assert (session_of(each), saved_in(each)["work"], saved_in(each)["other"]) == (LIVE, EARLIER, OTHER)
            assert current_in(each) in (None, *saved_in(each))
        assert status == 0
        assert current_in(again) == (words[2] if words[2:] else None)


def test_a_renamed_conversation_has_one_name_and_its_copies_follow(tmp_path: Path) -> None:
    copy = "-recovery-20260101T000000Z-01234567"
    base = make_home(tmp_path / "base", LIVE, work=EARLIER, **{f"work{copy}": OTHER})
    write(base / "current", b"work\n")

    whole, killed = crash(tmp_path, base, ["session", "rename", "work", "终稿"])

    for home, again, status in killed:
        assert sorted(content for name, content in saved_in(home).items()) == sorted([EARLIER, OTHER])
        if "work" in saved_in(home):
            assert status == 0  # the same command ends what it began
        else:  # nobody would look for a copy whose conversation has another name
            assert saved_in(home) == saved_in(whole)
        if status == 0:
            assert saved_in(again) == saved_in(whole) and current_in(again) == "终稿"
        else:
            assert (status, current_in(home)) == (66, "终稿")
    assert saved_in(whole) == {"终稿": EARLIER, f"终稿{copy}": OTHER}
    assert not (whole / "saved" / "work.lock").exists()


def test_clean_removes_whole_files_and_can_be_run_again(tmp_path: Path) -> None:
    old = {"auto-20260101T000000Z": LIVE, "work.~20260101T000000Z~": OTHER}
    base = make_home(tmp_path / "base", LIVE, work=EARLIER, **old)

    _, killed = crash(tmp_path, base, ["session", "clean", "--older", "0"])

    for home, again, status in killed:
        assert saved_in(home).items() <= {"work": EARLIER, **old}.items() and saved_in(home)["work"] == EARLIER
        assert status == 0
        assert saved_in(again) == {"work": EARLIER}
        assert [each.name for each in (again / "saved").glob("*.lock")] == []


def test_import_leaves_a_whole_session_or_none(tmp_path: Path) -> None:
    base = make_home(tmp_path / "base", LIVE)
    file = write(tmp_path / "f", '[{"role":"user","content":"问"},{"role":"assistant","content":"答"}]'.encode())

    _, killed = crash(tmp_path, base, ["session", "import", "new", str(file), "--from", "messages"])

    for home, again, status in killed:
        check_all_clean(home)
        assert session_of(home) == LIVE
        is_there = "new" in saved_in(home)
        assert status == (73 if is_there else 0)
        assert saved_in(again).keys() == {"new"}
        assert questions(saved_in(again)["new"]) == ["问"]


def test_delete_removes_one_session_and_no_other(tmp_path: Path) -> None:
    copy = "work-recovery-20260101T000000Z-01234567"
    base = make_home(tmp_path / "base", LIVE, work=EARLIER, other=OTHER, **{copy: TORN})
    write(base / "current", b"work\n")

    _, killed = crash(tmp_path, base, ["session", "delete", "work"])

    for home, again, status in killed:
        # Nothing of a name is left without the name: while there is a copy, its conversation is there.
        assert copy not in saved_in(home) or "work" in saved_in(home)
        is_there = saved_in(home).get("work") == EARLIER or (home / "saved" / "work.lock").exists()
        assert saved_in(home).keys() - {"work", copy} == {"other"}
        assert current_in(home) in ("work", None) and (current_in(home) is None or "work" in saved_in(home))
        assert session_of(again) == LIVE
        assert status == (0 if is_there else 66)
        assert saved_in(again) == {"other": OTHER}
        assert not (again / "current").exists() and not (again / "saved" / "work.lock").exists()


def test_forget_changes_each_file_whole_and_can_be_run_again(tmp_path: Path) -> None:
    live = numbered(EARLIER, SECRET, OTHER)
    base = make_home(tmp_path / "base", live, a=numbered(SECRET, OTHER), b=SECRET, c=EARLIER)
    copy = base / "sessions" / f"{'0' * 32}-recovery-20260101T000000Z-00000000.jsonl"
    write(copy, live + b'{"v":1,"seq":10,"ty')
    old = {path.relative_to(base): path.read_bytes() for path in base.rglob("*.jsonl")}

    whole, killed = crash(tmp_path, base, ["history", "forget", turns_of(SECRET)[0].turn_id])

    new = {path: (whole / path).read_bytes() for path in old}
    assert {state_of(content) for path, content in new.items() if path != copy.relative_to(base)} == {"clean"}
    for home, again, status in killed:
        for path in old:
            assert (home / path).read_bytes() in (old[path], new[path])
        assert status == (66 if session_of(home) != live else 0)
        for path in again.rglob("*"):
            assert not path.is_file() or "忘记我".encode() not in path.read_bytes(), path
    assert [turn.user for turn in turns_of(session_of(whole))] == ["earlier question", "other question"]


@pytest.mark.parametrize("name", [None, "工作"])
def test_a_file_with_the_name_of_a_recovery_copy_is_a_whole_one(tmp_path: Path, name: str | None) -> None:
    """A process that died while it copied left half a copy under that name, for ever."""
    base = make_home(tmp_path / "base", LIVE, 工作=EARLIER)
    path = base / f"saved/{name}.jsonl" if name else next((base / "sessions").iterdir())
    whole, torn = (
        path.read_bytes(),
        path.read_bytes() + '{"v":1,"seq":4,"type":"user_message","text":"半句'.encode()[:-1],
    )
    write(path, torn)
    _, killed = crash(tmp_path, base, ["history", "recover", *(["--session", name] if name else [])])
    left_half = 0
    for home, again, status in killed:
        for copy in home.rglob("*-recovery-*"):
            assert copy.read_bytes() == torn
        left_half += any(home.rglob(".mino-*.tmp"))
        assert status == 0 and (again / path.relative_to(base)).read_bytes() == whole
        assert not list(again.rglob(".mino-*.tmp"))
    assert left_half > 1
