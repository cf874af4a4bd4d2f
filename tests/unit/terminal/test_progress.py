"""How far a long check is: drawn for a person who has waited, over itself, and taken away."""

from collections.abc import Callable

import pytest
from wcwidth import wcswidth

from mino.terminal import output
from mino.terminal.progress import Progress


def test_it_is_drawn_after_a_while_and_now_and_then(screen: Callable[[], str], wait: Callable[[float], None]) -> None:
    progress = Progress("检查 🔎", 200)
    progress.advance(50)
    wait(0.4)
    progress.advance(50)
    assert screen() == ""
    wait(0.2)
    progress.advance(2)
    line = "mino: 检查 🔎: 51 %"
    assert screen() == f"\r{line}\r{line}"
    progress.advance(2)
    assert screen() == ""  # it was drawn a moment ago
    wait(0.2)
    progress.advance(1000)
    assert "100 %" in screen()
    progress.clear()
    blanks = " " * len("mino: 检查.. 🔎.: 100 %")  # wide characters take two columns
    assert screen() == f"\r{blanks}\r"
    progress.clear()
    assert screen() == ""


def test_it_stands_below_what_is_written_meanwhile(screen: Callable[[], str], wait: Callable[[float], None]) -> None:
    progress = Progress("检查", 10)
    wait(1)
    progress.advance(1)
    assert screen() == "\rmino: 检查: 10 %\rmino: 检查: 10 %"
    output.notice("找到")
    assert screen() == f"\r{' ' * 16}\rmino: 找到\n"
    progress.advance(1)  # though it was drawn a moment ago
    assert screen() == "\rmino: 检查: 20 %\rmino: 检查: 20 %"
    progress.clear()
    assert screen() == f"\r{' ' * 16}\r"


@pytest.mark.parametrize("name", ["a" * 300, "文件" * 100, "🐕" * 40 + "e\u0301" * 40, "x" * 65 + "文", "文" * 4000])
def test_a_line_never_wraps(screen: Callable[[], str], wait: Callable[[float], None], name: str) -> None:
    progress = Progress(name, 10)
    wait(1)
    progress.advance(1)
    drawn, again = screen().split("\r")[1:]
    assert drawn == again and drawn.endswith(": 10 %")
    assert 74 <= wcswidth(drawn) < 80
    progress.clear()
    assert screen() == f"\r{' ' * wcswidth(drawn)}\r"


def test_without_a_total_there_is_nothing_to_show(screen: Callable[[], str], wait: Callable[[float], None]) -> None:
    progress = Progress("checking", 0)
    wait(60)
    progress.advance(1)
    progress.clear()
    assert screen() == ""


def test_without_a_terminal_there_is_nothing_to_show(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], wait: Callable[[float], None]
) -> None:
    progress = Progress("checking", 100)
    wait(60)
    progress.advance(50)
    progress.clear()
    assert capfd.readouterr() == ("", "")
