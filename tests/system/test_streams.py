"""stdin, stdout and stderr that are closed: nothing ends up in the session file, and nothing is lost in silence."""

import pytest

from tests.server import ScriptedServer
from tests.system.program import CASES, Program

TORN = (CASES / "torn-last-newline.jsonl").read_bytes()
TURN = ["user_message", "assistant_message", "completed"]


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_without_stdin_or_stderr_a_turn_goes_well(mino: Program, server: ScriptedServer, closed: str) -> None:
    mino.write_session(TORN)  # so that there is something to say on stderr
    ended = mino.run_in_shell(f'exec "$@" {closed}', "ask", "q")
    assert (ended.status, ended.out) == (0, "巴黎 🗼\n")
    assert mino.types()[3:] == ["user_message", "assistant_message", "interrupted", *TURN]


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_without_stdout_the_turn_is_saved_and_the_status_says_so(
    mino: Program, server: ScriptedServer, closed: str
) -> None:
    mino.write_session(TORN)
    ended = mino.run_in_shell(f'exec "$@" {closed}', "ask", "q")
    assert (ended.status, ended.out) == (74, "")
    assert ("cannot write to stdout" in ended.err) == ("2>&-" not in closed)
    assert mino.types()[3:] == ["user_message", "assistant_message", "interrupted", *TURN]


@pytest.mark.parametrize("words", [["history", "show"], ["history", "verify"], ["ask", "--dry-run", "q"]])
def test_readers_without_stdout_say_so(mino: Program, words: list[str]) -> None:
    mino.write_session(TORN)
    ended = mino.run_in_shell('exec "$@" >&-', *words)
    assert ended.status == 74 and "cannot write to stdout" in ended.err


def test_a_stderr_that_is_full_stops_nothing(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(TORN)
    ended = mino.run_in_shell('exec "$@" 2>/dev/full', "ask", "q")
    assert (ended.status, ended.out) == (0, "巴黎 🗼\n")
