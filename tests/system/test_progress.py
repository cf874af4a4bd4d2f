"""How far a long check is: on a terminal, after half a second, and gone when it is done."""

import re
from pathlib import Path

from mino.journal.ids import new_id
from tests.homes import completed
from tests.system.program import Program
from tests.system.screen import Terminal


def slow_file(path: Path) -> Path:
    """A file that takes seconds to check, for a blank in each record asks for the strict path; nothing is found."""
    turns = completed(*((f"问题 {number} " + "甲乙丙 " * 20, "回答 🐕 " * 20) for number in range(50_000)))
    path.write_bytes(turns.replace(b'{"v":1,', b'{ "v":1,'))
    return path


def test_progress_is_drawn_and_taken_away(mino: Program, tmp_path: Path) -> None:
    path = slow_file(tmp_path / f"{new_id()}.jsonl")
    with Terminal(mino.command("history", "verify", str(path)), mino.environ) as terminal:
        pass
    assert terminal.status == 0
    drawn = [int(percent) for percent in re.findall(rb"\r(?:mino: |\xe2\x80\xa6)[^\r\n]* (\d+) %\r", terminal.raw)]
    assert drawn and drawn == sorted(drawn) and drawn[-1] <= 100
    assert "%" not in terminal.text


def test_progress_is_for_terminals(mino: Program, tmp_path: Path) -> None:
    path = slow_file(tmp_path / f"{new_id()}.jsonl")
    run = mino.run("history", "verify", str(path))
    assert run.status == 0 and run.err == ""
