"""Somebody deletes, replaces or changes the session file while the answer streams: Mino stops, and makes none anew."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server import ScriptedServer, answer_events, completed, events
from tests.system.program import BOTH, CASES, Ended, Program, finish, read_until

GOOD = (CASES / "good-two-turns.jsonl").read_bytes()
ANSWER = "巴黎 🗼"


def ask_while(mino: Program, change: Callable[[], object]) -> Ended:
    """Ask, and do `change` when the text was shown and the end has not come."""
    gate = threading.Event()
    *pieces, end = answer_events(ANSWER)
    with ScriptedServer(events(*pieces, gate, end)) as server:
        process = mino.start("ask", "q", server=server)
        read_until(process.stdout, ANSWER.encode())
        change()
        gate.set()
        return finish(process)


def replace(path: Path) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(GOOD)
    other.rename(path)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"written by another hand\n")


def link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


CHANGES: list[tuple[Callable[[Path], object], str]] = [
    (Path.unlink, "is gone"),
    (replace, "was replaced by another file"),
    (link, "was replaced by another file"),
    (append, "was changed by another process"),
    (lambda path: path.write_bytes(b""), "was changed by another process"),
    (lambda path: path.parent.rename(path.parent.with_name("elsewhere")), "is gone"),
]


@BOTH
@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_a_session_file_that_is_changed(mino: Program, change: Callable[[Path], object], said: str) -> None:
    path = mino.write_session(GOOD)
    left: dict[Path, bytes] = {}

    def change_and_look() -> None:
        change(path)
        left.update((file, file.read_bytes()) for file in mino.home.rglob("*") if file.is_file())

    failed = ask_while(mino, change_and_look)
    assert (failed.status, failed.out) == (74, "\n")
    assert f"the session file '{path}' {said}" in failed.err
    assert "the answer was shown and may not be saved" in failed.err
    assert {file: file.read_bytes() for file in mino.home.rglob("*") if file.is_file()} == left


@BOTH
def test_a_lock_that_is_deleted_lets_another_in_and_the_file_stays_whole(mino: Program) -> None:
    def intrude() -> None:
        mino.lock.unlink()
        with ScriptedServer(completed("second")) as server:
            assert mino.run("ask", "intruder", server=server).status == 0

    failed = ask_while(mino, intrude)
    assert failed.status == 74 and "was changed by another process" in failed.err
    turns, report = mino.load()
    assert report.state == "clean"
    assert [(turn.user, turn.status) for turn in turns] == [("q", "interrupted"), ("intruder", "completed")]


@BOTH
def test_a_cancelled_turn_cannot_be_saved_either(mino: Program) -> None:
    path = mino.write_session(GOOD)
    gate = threading.Event()
    with ScriptedServer(events(*answer_events(ANSWER)[:-1], gate)) as server:
        process = mino.start("ask", "q", server=server)
        read_until(process.stdout, ANSWER.encode())
        path.unlink()
        process.terminate()
        failed = finish(process)
    # A storage failure outranks the signal.
    assert failed.status == 74 and "the end of the cancelled turn may not be saved" in failed.err
    assert mino.files() == []
