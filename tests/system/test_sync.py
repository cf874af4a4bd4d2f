"""A sync that fails (EIO, injected into the system call): nothing is tried again, nothing is rolled back."""

from pathlib import Path

import pytest

from tests.server import ScriptedServer
from tests.system.prefixes import traced
from tests.system.program import BOTH, CASES, Ended, Program, Word, sent_texts

GOOD = (CASES / "good-two-turns.jsonl").read_bytes()
TORN = (CASES / "torn-last-newline.jsonl").read_bytes()


def failing(number: int, log: Path) -> list[Word]:
    """A prefix under which the sync with that number fails."""
    return traced("-o", str(log), "-e", "trace=fsync", "-e", f"inject=fsync:error=EIO:when={number}")


def ask(mino: Program, number: int) -> tuple[Ended, int]:
    """Ask with a sync that fails; also how many syncs there were in all."""
    log = mino.home.parent / "trace"
    ended = mino.run("ask", "now", prefix=failing(number, log))
    return ended, log.read_text().count("fsync(")


@BOTH
def test_the_sync_of_the_question_fails(mino: Program, server: ScriptedServer) -> None:
    path = mino.write_session(GOOD)
    failed, syncs = ask(mino, 1)
    assert (failed.status, failed.out, syncs) == (74, "", 1)
    assert failed.err == f"mino: cannot append to '{path}': Input/output error: the question was not sent\n"
    assert not server.connections
    assert mino.types()[6:] == ["user_message"]  # whether it is on disk is not known; the next start decides
    assert mino.run("ask", "again").status == 0 and mino.types()[6:8] == ["user_message", "interrupted"]


@BOTH
def test_the_sync_of_the_answer_fails(mino: Program, server: ScriptedServer) -> None:
    path = mino.write_session(GOOD)
    failed, syncs = ask(mino, 2)
    assert (failed.status, failed.out, syncs) == (74, "巴黎 🗼\n", 2)
    assert failed.err.startswith(f"mino: cannot append to '{path}': Input/output error: the answer was shown")
    assert len(mino.records()) == 9 and mino.run("history", "verify").status == 0


@BOTH
@pytest.mark.parametrize("number", range(1, 9))
def test_a_sync_of_a_first_start_fails(mino: Program, server: ScriptedServer, number: int) -> None:
    failed, syncs = ask(mino, number)
    assert (failed.status, syncs) == (74, number) and "Input/output error" in failed.err
    assert len(server.requests) == (number == 8)
    again = mino.run("ask", "again")
    assert (again.status, again.out) == (0, "巴黎 🗼\n")
    assert mino.load()[1].state == "clean" and len(mino.files()) == 1
    assert (mino.home / ".gitignore").read_bytes() == b"*\n"


@BOTH
def test_a_first_start_has_eight_syncs(mino: Program, server: ScriptedServer) -> None:
    # The home's entry, .gitignore and its entry, the sessions' entry, the new file and its entry, the question, the
    # answer with its end.
    ended, syncs = ask(mino, 9)
    assert (ended.status, syncs) == (0, 8)


@BOTH
@pytest.mark.parametrize("number", range(1, 5))
def test_a_sync_of_the_recovery_fails(mino: Program, server: ScriptedServer, number: int) -> None:
    path = mino.write_session(TORN)
    failed, syncs = ask(mino, number)
    assert (failed.status, syncs) == (74, number) and "Input/output error" in failed.err
    assert not server.connections
    # The copy, its directory entry: not known to be on disk, so it is removed, and nothing is cut.
    whole = [path.read_bytes() for path in mino.copies]
    assert (whole, path.read_bytes()) == ([], TORN) if number < 3 else whole == [TORN]
    again = mino.run("ask", "again")
    assert again.status == 0 and sent_texts(server.requests[0].json)[2:] == ["again"]
    assert mino.load()[1].state == "clean"
