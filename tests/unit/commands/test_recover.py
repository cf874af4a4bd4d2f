"""`history recover`: what a writer would do anyway, on demand; and salvage, which only a person chooses."""

import os
from pathlib import Path

import pytest

from mino.commands.recover import recover
from mino.errors import InvalidData, NotFound, SessionInUse, StorageFailed
from mino.home import Home
from mino.sessions.place import Place
from tests.homes import EACH_KIND, case, hold, home_with, judge, open_home, path_in, saved_in, session_path, write
from tests.unit.journal.sample import FIRST, SECOND, THIRD, file_of, load, question, turn, two_turns

Output = pytest.CaptureFixture[str]


def repair(
    home: Home,
    file: str | None = None,
    dry_run: bool = False,
    with_salvage: bool = False,
    as_json: bool = False,
    session: str | None = None,
) -> bool:
    return recover(home, session, 0, file, dry_run=dry_run, with_salvage=with_salvage, as_json=as_json)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("session", EACH_KIND)
@pytest.mark.parametrize(
    ("name", "cut", "closed"),
    [
        ("good-two-turns", 0, None),
        ("empty", 0, None),
        ("torn-40-bytes", 40, None),
        ("torn-last-newline", 99, "0193a0b1c2d300000000000000000002"),
        ("blank-last-line", 1, None),
        ("open-answer", 0, "0193a0b1c2d300000000000000000002"),
    ],
)
def test_a_recoverable_session(
    tmp_path: Path, capfd: Output, name: str, cut: int, closed: str | None, session: str | None, dry_run: bool
) -> None:
    home = home_with(tmp_path, session, case(name))
    path = path_in(home, session)
    folders = sorted(os.listdir(home.path))
    needed = bool(cut or closed)
    assert repair(home, dry_run=dry_run, as_json=True, session=session) is (needed and dry_run)
    [done] = judge(capfd.readouterr().out, "recovery.v1")
    assert done["action"] == ("recovered" if needed else "none")
    assert (done["cut_bytes"], done["closed_turn"], done["dry_run"]) == (cut, closed, dry_run)
    assert done["state"] == ("recoverable" if needed else "clean") and done["dropped"] == []
    copies = [each for each in path.parent.iterdir() if each != path and each.suffix == ".jsonl"]
    if dry_run:
        assert path.read_bytes() == case(name) and copies == [] and done["recovery_copy"] is None
        assert sorted(os.listdir(home.path)) == folders and os.listdir(path.parent) == [path.name]
    else:
        assert load(path.read_bytes())[1].state == "clean"
        assert [str(copy) for copy in copies] == ([done["recovery_copy"]] if cut else [])
        assert repair(home, dry_run=True, session=session) is False


def test_the_words_of_a_recovery(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, case("torn-last-newline"))
    path = session_path(home)
    what = "cut an unfinished end of 99 bytes and ended the open turn 0193a0b1c2d300000000000000000002 as interrupted"
    repair(home, dry_run=True)
    assert capfd.readouterr().out == f"{path}: recovery would {what.replace('ended', 'end')}\n"
    repair(home)
    [copy] = [other for other in Path(home.sessions).iterdir() if other != path]
    what = what.replace(" bytes", f" bytes, the whole file is in '{copy}'")
    assert capfd.readouterr().out == f"{path}: recovered: {what}\n"
    repair(home)
    assert capfd.readouterr().out == f"{path}: nothing to do\n"


def test_before_the_first_conversation_there_is_nothing_to_do(tmp_path: Path, capfd: Output) -> None:
    assert repair(Home(str(tmp_path / "missing"), False)) is False
    assert capfd.readouterr() == ("", "mino: there is no conversation yet\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("session", EACH_KIND)
@pytest.mark.parametrize("name", ["fused-records", "seq-gap", "byte-order-mark", "newer-version", "unknown-field"])
def test_an_invalid_session_is_left_as_it_is(
    tmp_path: Path, capfd: Output, name: str, session: str | None, dry_run: bool
) -> None:
    home = home_with(tmp_path, session, case(name))
    path = path_in(home, session)
    with pytest.raises(InvalidData) as caught:
        repair(home, dry_run=dry_run, session=session)
    assert caught.value.status == 65 and str(path) in caught.value.hint
    assert path.read_bytes() == case(name)
    assert [each for each in os.listdir(path.parent) if each.endswith(".jsonl")] == [path.name]
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("session", EACH_KIND)
def test_salvage_says_what_it_drops_with_the_questions_in_it(
    tmp_path: Path, capfd: Output, session: str | None, dry_run: bool
) -> None:
    lines = [*turn(1, FIRST), b"", question(4, SECOND, "甲？\n乙？"), b"rubbish", *turn(7, THIRD)]
    home = home_with(tmp_path, session, file_of(lines))
    path = path_in(home, session)
    before = path.read_bytes()
    assert repair(home, dry_run=dry_run, with_salvage=True, as_json=True, session=session) is dry_run
    [done] = judge(capfd.readouterr().out, "recovery.v1")
    assert (done["state"], done["action"], done["kept_turns"]) == ("invalid", "salvaged", 2)
    assert [(d["first_line"], d["last_line"], d["question"]) for d in done["dropped"]] == [
        *((4, 4, None), (5, 6, "甲？\n乙？")),
    ]
    if dry_run:
        assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]
        repair(home, dry_run=True, with_salvage=True, session=session)
        assert capfd.readouterr().out.splitlines() == [
            f"{path}: salvage would keep 2 turns",
            f"{path}:4: dropped: found an empty line, expected a record",
            f"{path}:5-6: dropped: turn {SECOND}: it has no end; not JSON: expecting value",
            "> 甲？",
            "> 乙？",
        ]
    else:
        assert Path(done["recovery_copy"]).read_bytes() == before
        turns, report = load(path.read_bytes())
        assert report.state == "clean" and [each.turn_id for each in turns] == [FIRST, THIRD]


def test_salvage_of_what_is_not_invalid_is_a_recovery(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, case("torn-last-newline"))
    assert repair(home, with_salvage=True, as_json=True) is False
    [done] = judge(capfd.readouterr().out, "recovery.v1")
    assert done["action"] == "recovered" and done["kept_turns"] == 2


@pytest.mark.parametrize("with_lock", [True, False])
@pytest.mark.parametrize("session", EACH_KIND)
def test_the_session_is_locked_whether_it_ever_was_or_not(tmp_path: Path, session: str | None, with_lock: bool) -> None:
    """A home that was copied without its lock file: two writers must still keep each other out."""
    home = home_with(tmp_path, session, case("torn-40-bytes"))
    lock = Place(home, session).lock
    if with_lock:
        write(Path(lock), b"")
    with hold(home, session):
        for file in (None, str(path_in(home, session))):
            for dry_run in (True, False):
                with pytest.raises(SessionInUse):
                    repair(home, file, dry_run=dry_run, session=None if file else session)
    assert repair(home, session=session) is False
    assert os.path.exists(lock)


def test_one_conversation_is_recovered_while_another_is_in_use(tmp_path: Path) -> None:
    home = open_home(tmp_path, case("torn-40-bytes"), other=case("torn-40-bytes"), third=case("open-question"))
    with hold(home, "third"):
        assert repair(home) is False
        assert repair(home, session="other") is False
        with pytest.raises(SessionInUse, match="the conversation 'third' is in use"):
            repair(home, session="third")
    assert [load(path_in(home, name).read_bytes())[1].state for name in (None, "other")] == ["clean"] * 2
    assert path_in(home, "third").read_bytes() == case("open-question")


def test_a_conversation_that_is_not_there_cannot_be_recovered(tmp_path: Path) -> None:
    home = open_home(tmp_path, case("torn-40-bytes"))
    with pytest.raises(NotFound, match="no conversation '没有'"):
        repair(home, session="没有")
    assert session_path(home).read_bytes() == case("torn-40-bytes") and os.listdir(home.path) == ["sessions"]


@pytest.mark.parametrize("lock", ["sessions.lock", "saved/巴黎.lock"])
def test_the_file_of_another_home_is_recovered_under_its_lock(tmp_path: Path, lock: str) -> None:
    """That home is known by either lock: it may never have had an unnamed conversation."""
    mine, other = open_home(tmp_path / "mine"), open_home(tmp_path / "other", None, 巴黎=case("torn-40-bytes"))
    write(Path(other.path, lock), b"")
    saved = path_in(other, "巴黎")
    with hold(other, "巴黎"), pytest.raises(SessionInUse):
        repair(mine, str(saved))
    with hold(other):  # of another conversation
        assert repair(mine, str(saved)) is False
    assert load(saved.read_bytes())[1].state == "clean" and len(saved_in(Path(other.path))) == 2
    assert os.listdir(mine.path) == ["sessions"]


def test_of_more_than_one_conversation_none_is_touched_by_its_name_either(tmp_path: Path) -> None:
    home = open_home(tmp_path, case("open-question"))
    before = session_path(home).read_bytes()
    other = write(Path(home.sessions, "f" * 32 + ".jsonl"), case("torn-40-bytes"))
    for path in (session_path(home), other):
        with pytest.raises(InvalidData, match="more than one conversation"):
            repair(home, str(path))
        assert repair(home, str(path), dry_run=True) is True  # which may tell a person which of them to keep
    assert session_path(home).read_bytes() == before and len(os.listdir(home.sessions)) == 2


def test_any_regular_file_can_be_recovered(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path / "home")
    path = write(tmp_path / "an export", case("torn-40-bytes"))
    assert repair(home, str(path), as_json=True) is False
    [done] = judge(capfd.readouterr().out, "recovery.v1")
    assert done["recovery_copy"].startswith(f"{path}-recovery-") and load(path.read_bytes())[1].state == "clean"
    for file, failure in (("missing", NotFound), ("", NotFound), ("link", StorageFailed), ("home", StorageFailed)):
        if file == "link":
            (tmp_path / file).symlink_to(path)
        with pytest.raises(failure):
            repair(home, str(tmp_path / file) if file else "")
    assert os.listdir(home.path) == ["sessions"] and os.listdir(home.sessions) == []


STRANGERS = {
    "a key without a last newline": b"ssh-ed25519 AAAA u@h",
    "a package.json without a last newline": b'{"name":"x","version":"1.0.0"}',
    "an export of another program": b'[{"title":"a","mapping":{}}]',
    "two lines of notes": b"Milk, eggs.\nCall Ann.\n",
    "a line of notes": "牛奶\n".encode(),
    "JSON Lines of another program": b'{"timestamp":"2026","type":"message"}\n{"timestamp":"2026","type":"end"}\n',
    "a log with a version of its own": b'{"v":1.0,"msg":"started"}\n',
    "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0",
    "zeros": b"\0" * 5000,
    "blank lines": b"\n\n",
    "a record without its newline": question(1, FIRST),
}


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("with_salvage", [True, False])
@pytest.mark.parametrize("content", STRANGERS.values(), ids=STRANGERS)
def test_a_file_that_is_not_minos_is_refused_and_left_as_it_is(
    tmp_path: Path, capfd: Output, content: bytes, with_salvage: bool, dry_run: bool
) -> None:
    """They were cut to nothing, with status 0."""
    home = open_home(tmp_path / "home")
    path = write(tmp_path / "keys", content)
    with pytest.raises(InvalidData, match="is not a conversation of Mino's") as caught:
        repair(home, str(path), dry_run=dry_run, with_salvage=with_salvage)
    assert caught.value.hint == "" and capfd.readouterr() == ("", "")
    assert path.read_bytes() == content and sorted(os.listdir(tmp_path)) == ["home", "keys"]


@pytest.mark.parametrize("folder", ["sessions", "saved", "elsewhere/sessions"])
def test_a_stranger_in_a_folder_of_minos_is_refused_too(tmp_path: Path, folder: str) -> None:
    """A name without the ending is none of Mino's, and a folder of that name is Mino's only with a lock beside it."""
    home = open_home(tmp_path)
    path = Path(home.path, folder, "keys" if folder in ("sessions", "saved") else f"{FIRST}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, b"ssh-ed25519 AAAA u@h")
    with pytest.raises(InvalidData, match="is not a conversation of Mino's"):
        repair(home, str(path), with_salvage=True)
    assert path.read_bytes() == b"ssh-ed25519 AAAA u@h"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]', "messages"),
        (
            b'{"savedAt":"","turnCount":1,"history":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}',
            "json",
        ),
        (b'{"type":"session"}\n{"role":"user","content":"a"}\n{"role":"assistant","content":"b"}\n', "eino"),
    ],
)
def test_a_conversation_of_another_program_is_to_be_imported(tmp_path: Path, content: bytes, kind: str) -> None:
    path = write(tmp_path / "a b.json", content)
    with pytest.raises(InvalidData) as caught:
        repair(open_home(tmp_path / "home"), str(path))
    assert caught.value.hint == f"mino session import NAME '{path}' --from {kind}"
    assert path.read_bytes() == content


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    "content",
    [b"Milk, eggs.\nCall Ann.\n", b"{}\n", file_of([question(1, FIRST, "甲？"), b"{", b"rubbish"])],
    ids=["notes", "an object", "an open turn"],
)
def test_a_salvage_that_would_keep_no_turn_is_refused(
    tmp_path: Path, capfd: Output, content: bytes, dry_run: bool
) -> None:
    home = open_home(tmp_path, content, 巴黎=content)
    for file, hint in ((None, "mino session new"), (str(path_in(home, "巴黎")), "mino session new")):
        with pytest.raises(InvalidData, match=r"no turn of .* can be kept; the file is unchanged") as caught:
            repair(home, file, dry_run=dry_run, with_salvage=True)
        assert caught.value.hint == hint
        out = capfd.readouterr().out
        assert ("salvage would keep 0 turns" in out and "dropped" in out) is dry_run
        assert ("> 甲？" in out) is (dry_run and "甲".encode() in content)
    assert session_path(home).read_bytes() == content
    assert os.listdir(home.sessions) == [f"{FIRST}.jsonl"] and list(saved_in(Path(home.path))) == ["巴黎"]


@pytest.mark.parametrize("session", EACH_KIND)
def test_a_recovered_session_is_private(tmp_path: Path, capfd: Output, session: str | None) -> None:
    home = home_with(tmp_path, session, file_of(two_turns()) + b"{")
    path = path_in(home, session)
    path.chmod(0o644)
    repair(home, session=session)
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    assert "narrowed" in capfd.readouterr().err
