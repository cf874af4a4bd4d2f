"""How far a long check is: on a terminal, after half a second, and gone when it is done."""

import re
from pathlib import Path

import pytest

from mino.journal.ids import new_id
from tests.homes import completed
from tests.system.program import Program
from tests.system.screen import Terminal
from tests.system.window import Window


def slow_file(path: Path, turns: int = 50_000) -> Path:
    """A file that takes seconds to check, for a blank in each record asks for the strict path; nothing is found."""
    data = completed(*((f"问题 {number} " + "甲乙丙 " * 20, "回答 🐕 " * 20) for number in range(turns)))
    path.write_bytes(data.replace(b'{"v":1,', b'{ "v":1,'))
    return path


def test_progress_is_drawn_and_taken_away(mino: Program, tmp_path: Path) -> None:
    path = slow_file(tmp_path / f"{new_id()}.jsonl")
    with Terminal(mino.command("history", "verify", str(path)), mino.environ) as terminal:
        pass
    assert terminal.status == 0
    drawn = [int(percent) for percent in re.findall(rb"\r(?:mino: |\xe2\x80\xa6)[^\r\n]* (\d+) %\r", terminal.raw)]
    assert drawn and drawn == sorted(drawn) and drawn[-1] <= 100
    assert "%" not in terminal.text


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_progress_over_many_files_can_be_seen(mino: Program, tmp_path: Path, quiet: list[str]) -> None:
    """It was removed as soon as it was drawn: nobody saw it."""
    first = slow_file(tmp_path / f"{new_id()}.jsonl", 1500)
    paths = [first]
    for number in range(120):
        paths.append(tmp_path / f"文件🐕{number:03}.jsonl")
        paths[-1].hardlink_to(first)
    with Window(
        mino.command("history", "verify", *quiet, *map(str, paths)), mino.environ, tmp_path, columns=60
    ) as window:
        looks = []
        while window.status is None:
            looks.append(window.text.rpartition("\n")[2])
        assert window.status == 0
        seen = [int(match[1]) for look in looks if (match := re.fullmatch(r"mino: checking 121 files: (\d+) %", look))]
        assert len(seen) > 10 and seen == sorted(seen), looks
        assert "%" not in window.history
        assert window.text.split("\n")[-1] == ("" if quiet else "121 files: 121 clean")


def test_wide_names_leave_nothing_behind(mino: Program, tmp_path: Path) -> None:
    path = slow_file(tmp_path / ("第一个问题🐕" * 8 + ".jsonl"))
    with Window(mino.command("history", "verify", str(path)), mino.environ, tmp_path, columns=50) as window:
        window.wait_for(lambda text: text.startswith("…") and text.endswith(" %"))
        window.wait_for(lambda text: window.status == 0)
        assert "%" not in window.history and "…" not in window.history
        assert window.history.startswith(str(path)[:20])


def test_progress_is_for_terminals(mino: Program, tmp_path: Path) -> None:
    path = slow_file(tmp_path / f"{new_id()}.jsonl")
    run = mino.run("history", "verify", str(path))
    assert run.status == 0 and run.err == ""
