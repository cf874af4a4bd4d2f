"""The sign of life: after two seconds, on a terminal alone, and gone without a trace."""

import os
import pty
from collections.abc import Callable

import pytest

from mino.terminal import output
from mino.terminal.output import AnswerStream
from mino.terminal.waiting import Waiting


def shown(written: str) -> str:
    """What a line of a terminal has at the end of `written`."""
    line: list[str] = []
    column = 0
    for character in written:
        if character == "\r":
            column = 0
            continue
        line[column : column + 1] = [character]
        column += 1
    return "".join(line).rstrip()


def test_it_says_what_is_waited_for_and_how_long(screen: Callable[[], str], wait: Callable[[float], None]) -> None:
    waiting = Waiting("模型 at http://x")
    waiting.begin()
    for seconds in (0.5, 1.0):
        wait(seconds)
        waiting.tick()
    assert screen() == ""
    wait(1.0)
    waiting.tick()
    first = screen()
    assert shown(first) == "mino: waiting for 模型 at http://x: 2 s"
    wait(9.0)
    waiting.tick()
    second = screen()
    assert shown(first + second) == "mino: waiting for 模型 at http://x: 12 s"
    waiting.end()
    assert shown(first + second + screen()) == ""
    wait(9.0)
    waiting.tick()
    assert screen() == ""


def test_after_a_word_it_comes_back_only_if_the_answer_is_not_on_the_terminal(
    screen: Callable[[], str], wait: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_terminal in (False, True):
        if is_terminal:
            monkeypatch.setattr(output, "is_terminal", lambda fd: True)
        waiting = Waiting("m")
        waiting.begin()
        wait(3)
        waiting.tick()
        before = screen()
        waiting.take_word()
        assert shown(before + screen()) == ""
        wait(1.5)
        waiting.tick()
        assert screen() == ""
        wait(1)
        waiting.tick()
        assert ("waiting for m" in screen()) is not is_terminal
        waiting.end()


def test_nothing_of_it_goes_into_a_pipe(wait: Callable[[float], None], capfd: pytest.CaptureFixture[str]) -> None:
    waiting = Waiting("m")
    waiting.begin()
    wait(30)
    waiting.tick()
    waiting.take_word()
    waiting.end()
    assert capfd.readouterr() == ("", "")


def test_an_answer_takes_it_away(
    screen: Callable[[], str], wait: Callable[[float], None], capfd: pytest.CaptureFixture[str]
) -> None:
    waiting = Waiting("m")
    stream = AnswerStream(waiting=waiting)
    stream.begin()
    wait(5)
    waiting.tick()
    written = screen()
    assert "waiting" in written
    stream.show("巴黎")
    assert shown(written + screen()) == "" and capfd.readouterr().out == "巴黎"
    stream.end()


def test_a_terminal_that_is_gone_does_not_take_the_answer_with_it(
    wait: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    master, slave = pty.openpty()
    monkeypatch.setattr(output, "STDERR", slave)
    waiting = Waiting("m")
    stream = AnswerStream(waiting=waiting)
    stream.begin()
    wait(5)
    waiting.tick()
    assert output.is_drawn()
    os.close(master)
    stream.show("巴黎 🗼")
    wait(5)
    waiting.tick()
    stream.end()
    assert capfd.readouterr().out == "巴黎 🗼\n" and not stream.failure and not output.is_drawn()
    os.close(slave)
