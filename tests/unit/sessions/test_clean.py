"""`clean` removes what Mino kept by itself, when it is old, and nothing else."""

import os
from pathlib import Path

import pytest

from mino.errors import StorageFailed
from mino.home import Home
from mino.sessions import clean as module
from mino.sessions.clean import Removed, clean
from mino.sessions.place import Place, set_current
from tests.homes import completed, copy_path, hold, open_home, path_in, refuse_telling, write

NOW = 1_800_000_000.0
DAY = 86_400.0
COPY = "-recovery-20260101T000000Z-01234567"
AUTOMATIC = [
    "auto-20260101T000000Z",
    "auto-20260101T000000Z-2",
    "work.~20260101T000000Z~",
    "检查点 🏕.~20260101T000000Z-12~",
    "auto-repair.~20260101T000000Z~",
]
PERSONS = [
    "work",
    "检查点 🏕",
    "auto-repair",
    "auto-20260101T000000",
    "auto-20260101T000000Z-x",
    "my auto-20260101T000000Z",
    "work.~2026~",
    "work~",
    "x-recovery-y",
]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "now", lambda: NOW)


def old(path: Path, content: bytes = b"x", days: float = 31) -> Path:
    """A file that was written so many days ago."""
    write(path, content)
    os.utime(path, (NOW, NOW - days * DAY))
    return path


def run(home: Home, days: float = 30, *, dry_run: bool = False) -> list[str]:
    """The names of the files that were removed, where nothing is to be told."""
    return sorted(os.path.basename(each.path) for each in clean(home, days * DAY, refuse_telling, dry_run=dry_run))


def files(home: Home) -> set[str]:
    """The names of all files in both folders but the locks."""
    names = {*os.listdir(home.sessions), *(os.listdir(home.saved) if os.path.isdir(home.saved) else ())}
    return {name for name in names if not name.endswith(".lock")}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of which everything is old: what persons named, copies of both kinds, and other files."""
    home = open_home(tmp_path / "home")
    for path in (path_in(home, None), *(path_in(home, name) for name in (*AUTOMATIC, *PERSONS))):
        old(path)
    for name in (None, "work", "gone 🏕", "auto-20260101T000000Z"):
        old(copy_path(home, name))
    for other in (
        "notes.txt",
        f"work{COPY}.jsonl~",
        f"work{COPY}.json",
        "auto-20260101T000000Z.jsonl~",
        f"-x{COPY}.jsonl",
    ):
        old(Path(home.saved, other))
    for other in ("auto-20260101T000000Z.jsonl", "work.~20260101T000000Z~.jsonl"):
        old(Path(home.sessions, other))  # Mino puts none there
    old(Path(home.path, f"work{COPY}.jsonl"))
    return home


def automatic(home: Home) -> set[str]:
    copies = (copy_path(home, name).name for name in (None, "work", "gone 🏕", "auto-20260101T000000Z"))
    return {*(f"{name}.jsonl" for name in AUTOMATIC), *copies}


def test_exactly_what_mino_kept_by_itself_is_removed(home: Home) -> None:
    before = files(home)
    in_sessions = {"auto-20260101T000000Z.jsonl", "work.~20260101T000000Z~.jsonl"}
    assert run(home, dry_run=True) == sorted(automatic(home)) and files(home) == before
    assert not [name for name in os.listdir(home.saved) if name.endswith(".lock")] and not os.path.exists(home.lock)
    assert run(home) == sorted(automatic(home))
    assert files(home) == before - automatic(home) | in_sessions
    assert os.path.exists(f"{home.path}/work{COPY}.jsonl")
    assert all(path_in(home, name).read_bytes() == b"x" for name in (None, *PERSONS))
    assert run(home) == []


def test_the_locks_of_what_is_gone_are_gone_too(home: Home) -> None:
    run(home)
    assert [name for name in os.listdir(home.saved) if name.endswith(".lock")] == ["work.lock"]


def test_a_lock_whose_conversation_is_gone_is_gone_with_what_its_writer_left(tmp_path: Path) -> None:
    """Whoever deleted it, or made it for the first time, was killed; no other command comes by there again."""
    home = open_home(tmp_path, None, work=b"")
    lock = write(Path(Place(home, "没有 🏕").lock), b"1 mino session\n")
    half = write(Path(home.saved, ".mino-0123456789abcdef-没有 🏕.tmp"), b"x")
    stay = [
        Path(Place(home, "work").lock),
        Path(home.saved, ".mino-0123456789abcdef-work.tmp"),
        Path(home.saved, ".a.lock"),
    ]
    for path in stay:
        write(path, b"")
    assert run(home, dry_run=True) == [] and lock.exists() and half.exists()
    with hold(home, "没有 🏕"):
        write(half, b"x")  # another one is making it just now
        assert run(home) == [] and lock.exists() and half.exists()
    assert run(home) == [] and not lock.exists() and not half.exists()
    assert all(path.exists() for path in stay)


def test_the_size_and_the_path_of_each_are_known(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    path = old(path_in(home, AUTOMATIC[0]), "长城 🧱".encode())
    for dry_run in (True, False):
        assert clean(home, DAY, refuse_telling, dry_run=dry_run) == [Removed(str(path), 11)]
    assert not path.exists()


@pytest.mark.parametrize(
    ("age", "days", "is_removed"),
    [
        (31, 30, True),
        (29, 30, False),
        (30, 30, False),
        (0.5, 0, True),
        (-1, 0, False),
        (1.5, 1.4, True),
        (1e5, 1e6, False),
    ],
)
def test_the_age_is_that_of_the_file_and_not_of_its_name(
    tmp_path: Path, age: float, days: float, is_removed: bool
) -> None:
    home = open_home(tmp_path)
    paths = [old(path, days=age) for path in (path_in(home, AUTOMATIC[0]), copy_path(home, None))]
    assert len(run(home, days)) == (2 if is_removed else 0)
    assert [path.exists() for path in paths] == [not is_removed] * 2


@pytest.mark.parametrize("current", [AUTOMATIC[0], "检查点 🏕.~20260101T000000Z-12~"])
def test_the_current_one_stays_and_its_recovery_copies_go(home: Home, current: str) -> None:
    old(copy_path(home, current))
    set_current(home, current)
    assert f"{current}.jsonl" not in run(home) and path_in(home, current).exists()
    assert not copy_path(home, current).exists()


def test_one_that_becomes_current_meanwhile_stays(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    find = module._find

    def open_then(*arguments: object) -> object:
        found = find(*arguments)  # type: ignore[arg-type]
        set_current(home, AUTOMATIC[0])
        return found

    monkeypatch.setattr(module, "_find", open_then)
    assert f"{AUTOMATIC[0]}.jsonl" not in run(home) and path_in(home, AUTOMATIC[0]).exists()


@pytest.mark.parametrize("busy", [None, "work", AUTOMATIC[0]])
def test_what_is_in_use_is_passed_over_and_that_is_told(home: Home, busy: str | None) -> None:
    told: list[str] = []
    mine = {copy_path(home, busy).name} | ({f"{busy}.jsonl"} if busy == AUTOMATIC[0] else set())
    with hold(home, busy):
        removed = clean(home, DAY, told.append, dry_run=False)
    assert {os.path.basename(each.path) for each in removed} == automatic(home) - mine
    [sentence] = told
    assert sentence.startswith(f"{Place(home, busy)} is in use by process ") and sentence.endswith("; its copies stay")
    assert mine <= files(home)
    assert run(home) == sorted(mine)


def test_one_that_was_written_to_while_the_lock_was_free_stays(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    find = module._find

    def ask_then(*arguments: object) -> object:
        found = find(*arguments)  # type: ignore[arg-type]
        path_in(home, AUTOMATIC[0]).write_bytes(completed(("新", "new")))
        os.utime(path_in(home, AUTOMATIC[0]), (NOW, NOW))
        return found

    monkeypatch.setattr(module, "_find", ask_then)
    assert f"{AUTOMATIC[0]}.jsonl" not in run(home)
    assert path_in(home, AUTOMATIC[0]).read_bytes() == completed(("新", "new"))
    assert os.path.exists(Place(home, AUTOMATIC[0]).lock)  # that of a conversation which is there


def test_what_is_no_regular_file_is_left_to_the_person(home: Home, tmp_path: Path) -> None:
    """A link to nothing ended it in a traceback."""
    target = old(tmp_path / "target")
    names = [f"auto-20250101T00000{digit}Z.jsonl" for digit in range(3)]
    for name, leads_to in zip(names, ("nowhere", str(target)), strict=False):
        os.symlink(leads_to, os.path.join(home.saved, name))
        os.utime(os.path.join(home.saved, name), (0, 0), follow_symlinks=False)
    os.mkdir(os.path.join(home.saved, names[2]))
    os.utime(os.path.join(home.saved, names[2]), (0, 0))
    assert run(home) == sorted(automatic(home))
    assert set(names) <= files(home) and target.exists()


def test_what_cannot_be_removed_is_a_failure(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(StorageFailed, match="cannot delete"):
        clean(home, DAY, refuse_telling, dry_run=False)
    assert automatic(home) <= files(home)


def test_a_home_that_is_not_there_has_nothing_to_clean(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "missing"), False)
    assert clean(home, 0, refuse_telling, dry_run=False) == []
    assert os.listdir(tmp_path) == []
