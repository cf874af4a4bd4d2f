"""kill -9 at each step of every command that changes sessions: nothing is lost, and the command can be run again."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.homes import completed, make_home, numbered, questions, saved_in, session_of, state_of, turns_of, write
from tests.system.program import ROOT

LIVE = completed(("现场的问题", "现场的回答 🙂"), ("live question", "live answer"))
EARLIER = completed(("earlier question", "earlier answer"))
OTHER = completed(("other question", "other answer"))
SECRET = completed(("forget 忘记我", "forgotten 回答"))

Check = Callable[[Path], None]


def crash(tmp_path: Path, base: Path, words: Sequence[str]) -> tuple[Path, list[tuple[Path, Path, int]]]:
    """Kill `mino` at each of its steps: the home after a whole run; the killed ones, run again, with its status."""
    place = tmp_path / "crashed"
    place.mkdir()
    command = [sys.executable, "-m", "tests.system.crashing", str(base), str(place), *words]
    environ = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    *statuses, last = (int(line) for line in done.stdout.split())
    output = place / "output"
    assert last == 0, output.read_text()
    assert "Traceback" not in output.read_text()
    assert len(statuses) > 5
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


@pytest.mark.parametrize(
    ("words", "current", "new"),
    [
        (["session", "load", "other"], None, OTHER),
        (["session", "load", "other"], "work", OTHER),
        (["session", "load", "work"], "work", EARLIER),
        (["session", "new"], None, b""),
        (["session", "new"], "other", b""),
        (["session", "open", "other"], "work", OTHER),
        (["session", "open", "fresh"], "other", b""),
        (["session", "save", "other"], None, LIVE),
        (["undo"], None, b"".join(LIVE.splitlines(keepends=True)[:3])),
        (["undo"], "other", b"".join(LIVE.splitlines(keepends=True)[:3])),
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
        check_name(home, current, words)
        assert status == 0
        # What was undone is undone: asked once more, it takes the next turn out.
        check_finished(again, b"" if words == ["undo"] and session_of(home) == new else new, words)
    check_finished(whole, new, words)
    assert saved_in(whole).keys() >= {"work", "other"}


def check_name(home: Path, before: str | None, words: list[str]) -> None:
    """The name belongs to the content: a conversation is never saved back under the name of another."""
    current = home / "current"
    name = current.read_text().removesuffix("\n") if current.exists() else None
    if name is None or words[1:2] == ["save"] or words == ["undo"] or words[2:] == [before]:
        assert name in (before, None)
    elif session_of(home) == LIVE:
        assert name == before
    else:
        assert [name] == words[2:]
        assert words[1] == "open"


def check_finished(home: Path, new: bytes, words: list[str]) -> None:
    """The command has done all it should."""
    check_all_clean(home)
    assert session_of(home) == new
    assert kept_in(home) >= {EARLIER, OTHER, LIVE}
    assert not list(home.rglob(".mino-*"))
    if words[1:2] == ["open"]:
        assert (home / "current").read_text() == words[2] + "\n"


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
    base = make_home(tmp_path / "base", LIVE, work=EARLIER, other=OTHER)
    write(base / "current", b"work\n")

    _, killed = crash(tmp_path, base, ["session", "delete", "work"])

    for home, again, status in killed:
        is_there = saved_in(home).get("work") == EARLIER
        assert saved_in(home).keys() - {"work"} == {"other"}
        assert session_of(again) == LIVE
        assert status == (0 if is_there else 66)
        assert saved_in(again) == {"other": OTHER}
        assert not (again / "current").exists()


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


def test_a_file_with_the_name_of_a_recovery_copy_is_a_whole_one(tmp_path: Path) -> None:
    """A process that died while it copied left half a copy under that name, for ever."""
    torn = LIVE + '{"v":1,"seq":7,"type":"user_message","text":"半句'.encode()[:-1]
    base = make_home(tmp_path / "base", torn)
    _, killed = crash(tmp_path, base, ["history", "recover"])
    left_half = 0
    for home, again, status in killed:
        for copy in (home / "sessions").glob("*-recovery-*"):
            assert copy.read_bytes() == torn
        left_half += any((home / "sessions").glob(".mino-*.tmp"))
        assert status == 0 and session_of(again) == LIVE
        assert not list(again.rglob(".mino-*.tmp"))
    assert left_half > 1
