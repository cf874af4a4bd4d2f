"""stdout and stderr: bytes in a pipe, visible control characters on a terminal, and readers that go away."""

import json
import os
import pty
import re
import threading
import tty
from collections.abc import Callable, Iterator

import pytest

from mino import terminal
from mino.errors import MinoError, NotThere, ReaderGone, StorageFailed
from mino.terminal import AnswerStream, notice, one_line, show, show_json, show_lines, tell, visible

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\x00\r\u202eabc\u2066\u200f"


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bytes]]:
    """stdout and stderr are one pipe; what was written to it."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    monkeypatch.setattr(terminal, "STDOUT", write_end)
    monkeypatch.setattr(terminal, "STDERR", write_end)
    yield lambda: os.read(read_end, 1 << 20)
    os.close(read_end)
    os.close(write_end)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bytes]]:
    """stdout is a terminal; what it was sent."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    monkeypatch.setattr(terminal, "STDOUT", slave)
    yield lambda: os.read(master, 1 << 20)
    os.close(master)
    os.close(slave)


def test_in_a_pipe_the_bytes_are_exact(pipe: Callable[[], bytes]) -> None:
    show("你好 😀\n" + HOSTILE)
    assert pipe() == ("你好 😀\n" + HOSTILE).encode()


def test_on_a_terminal_control_characters_are_seen_and_not_obeyed(screen: Callable[[], bytes]) -> None:
    show("你好 😀\n\t" + HOSTILE)
    shown = screen().decode()
    assert shown.startswith("你好 😀\n\t\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\x7f\\x00\\x0d\\u202eabc\\u2066\\u200f")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_every_control_character_is_made_visible() -> None:
    for code in (
        *range(0x20),
        *range(0x7F, 0xA0),
        0x61C,
        0x200E,
        0x200F,
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    ):
        character = chr(code)
        assert visible(character) == character if character in "\t\n" else visible(character).isascii()
    for text in ("naïve café", "你好，世界", "😀👩‍👩‍👧", "a\u00a0b", "שלום", "\ufffd"):
        assert visible(text) == text


def test_json_on_a_terminal_is_still_json_and_harmless(screen: Callable[[], bytes]) -> None:
    show_json({"text": HOSTILE + "你"})
    shown = screen().decode()
    assert json.loads(shown) == {"text": HOSTILE + "你"}
    assert shown.endswith('你"}\n') and not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)


def test_json_in_a_pipe_is_one_line_of_utf_8(pipe: Callable[[], bytes]) -> None:
    show_json({"text": "你\n\x9b", "n": 10**30})
    assert pipe() == '{"text":"你\\n\x9b","n":1000000000000000000000000000000}\n'.encode()
    show_lines(["一", "二"])
    assert pipe() == "一\n二\n".encode()


def test_text_that_is_not_text_makes_no_traceback(pipe: Callable[[], bytes]) -> None:
    """As the name of a file that is not UTF-8."""
    show(os.fsdecode(b"a\xffb"))
    show_json(os.fsdecode(b"a\xffb"))
    notice(os.fsdecode(b"a\xffb"))
    assert pipe() == b'a?b"a?b"\nmino: a\\xffb\n'  # what a hint must be pasted with, as the byte that it is


def test_one_line_is_one_clean_line() -> None:
    assert one_line("  a\n\tb\u2028c \x1b[2J ") == "a b c \\x1b[2J"
    assert one_line("法" * 500) == "法" * 199 + "…"
    assert one_line("法" * 200) == "法" * 200


def test_a_reader_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    monkeypatch.setattr(terminal, "STDOUT", write_end)
    monkeypatch.setattr(terminal, "STDERR", write_end)
    with pytest.raises(ReaderGone):
        show("x")
    notice("nobody reads this, and the work goes on")
    stream = AnswerStream()
    with pytest.raises(ReaderGone):
        stream.show("x")
    stream.end()
    os.close(write_end)


def test_a_stdout_that_cannot_be_written_is_a_failure_but_not_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "STDOUT", os.open(os.devnull, os.O_RDONLY))
    with pytest.raises(StorageFailed, match="cannot write to stdout: Bad file descriptor"):
        show("x")
    stream = AnswerStream()
    for piece in ("一", "二"):
        stream.show(piece)
    stream.end()
    assert stream.failure and stream.failure.status == 74
    os.close(terminal.STDOUT)


@pytest.mark.parametrize(
    ("pieces", "out"),
    [
        (["Paris"], "Paris\n"),
        (["Par", "", "is\n"], "Paris\n"),
        (["巴黎\n\n"], "巴黎\n\n"),
        ([], ""),
        ([""], ""),
        (["\n"], "\n"),
    ],
)
def test_an_answer_ends_in_a_newline_and_nothing_is_taken_away(
    pipe: Callable[[], bytes], pieces: list[str], out: str
) -> None:
    stream = AnswerStream()
    for piece in filter(None, pieces):
        stream.show(piece)
        assert pipe() == piece.encode()  # at once, not at the end
    stream.show("")
    stream.end()
    os.write(terminal.STDOUT, b"|")
    assert "".join(pieces).encode() + pipe() == out.encode() + b"|"


def test_every_line_on_stderr_has_its_prefix(pipe: Callable[[], bytes]) -> None:
    notice("cannot open 'a\nb\x1b[2J': Permission denied")
    tell(NotThere("'你' does not exist", "ls -l '你'"))
    tell(MinoError("without a hint"))
    out = pipe().decode()
    assert out == (
        "mino: cannot open 'a\\x0ab\\x1b[2J': Permission denied\n"
        "mino: '你' does not exist\nhint: ls -l '你'\nmino: without a hint\n"
    )


def test_a_pipe_that_somebody_made_non_blocking_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    monkeypatch.setattr(terminal, "STDOUT", write_end)
    text = "法" * 500_000
    received: list[bytes] = []

    def read_all() -> None:
        while chunk := os.read(read_end, 1 << 16):
            received.append(chunk)

    reader = threading.Thread(target=read_all)
    reader.start()
    show(text)
    os.close(write_end)
    reader.join()
    os.close(read_end)
    assert b"".join(received).decode() == text


def test_a_closed_descriptor_is_no_terminal() -> None:
    assert not terminal.is_terminal(1 << 20)
