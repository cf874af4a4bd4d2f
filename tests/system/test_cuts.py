"""A two-turn history cut at every byte position: an unfinished turn never enters a request, and the file gets clean."""

from collections.abc import Callable

import pytest

from tests.server import ScriptedServer
from tests.system.forks import forks
from tests.system.program import BOTH, CASES, Program, load, sent_texts

WHOLE = (CASES / "good-two-turns.jsonl").read_bytes()
FIRST_TURN = 357  # bytes
TEXTS = ["我最喜欢的颜色是蓝色。", "你最喜欢的颜色是蓝色。", "And my dog is called Rex.", "Noted: Rex 🐕."]
PARTS = 6  # tests that share the positions, so that they run beside each other


def finished(cut: int) -> list[str]:
    """The texts of the turns that are whole in the first `cut` bytes."""
    return TEXTS if cut == len(WHOLE) else TEXTS[:2] if cut >= FIRST_TURN else []


@pytest.mark.parametrize("part", range(PARTS))
def test_a_history_cut_anywhere(mino: Program, server: ScriptedServer, part: int) -> None:
    assert WHOLE[:FIRST_TURN].endswith(b'"completed"}\n') and WHOLE.count(b"\n") == 6
    with forks(mino) as program:
        for cut in range(part, len(WHOLE) + 1, PARTS):
            check_cut(mino, server, program.run, cut)


def check_cut(mino: Program, server: ScriptedServer, run: Callable[..., int], cut: int) -> None:
    """Ask in a session of the first `cut` bytes."""
    data = WHOLE[:cut]
    for copy in mino.copies:
        copy.unlink()
    path = mino.write_session(data)
    assert run("ask", "now") == 0, cut
    assert sent_texts(server.requests[-1].json) == [*finished(cut), "now"], cut

    tail = len(data) - (data.rfind(b"\n") + 1)
    turns, report = mino.load()
    assert report.state == "clean" and not report.findings, cut
    assert path.read_bytes().startswith(data[: cut - tail]), cut
    assert [copy.read_bytes() for copy in mino.copies] == [data] * bool(tail), cut
    # A question that was whole was asked; what became of it is not known, so it stays and is ended.
    was_open = load(data)[1].open_turn is not None
    assert [turn.status for turn in turns].count("interrupted") == was_open, cut
    assert [turn.user for turn in turns if turn.status == "completed"] == [*finished(cut)[::2], "now"], cut


@BOTH
@pytest.mark.parametrize("cut", [0, 1, 109, 110, 111, 356, 357, 358, 400, 474, 475, 588, 589, 687, 688, 689])
def test_a_history_cut_there_through_the_whole_program(mino: Program, server: ScriptedServer, cut: int) -> None:
    check_cut(mino, server, lambda *words: mino.run(*words).status, cut)
    assert mino.run("history", "verify").status == 0
