"""stdout and stderr: bytes in a pipe, visible control characters on a terminal, and readers that go away."""

import json
import os
import pty
import re
import threading
import tty
from collections.abc import Callable, Iterator

import pytest

from mino.errors import MinoError, NotFound, ReaderGone, StorageFailed
from mino.terminal import output
from mino.terminal.output import AnswerStream, format_json, notice, show, show_failure, show_json, show_lines

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\x00\r\u202eabc\u2066\u200f"


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bytes]]:
    """stdout and stderr are one pipe; what was written to it."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    monkeypatch.setattr(output, "STDOUT", write_end)
    monkeypatch.setattr(output, "STDERR", write_end)
    yield lambda: os.read(read_end, 1 << 20)
    os.close(read_end)
    os.close(write_end)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bytes]]:
    """stdout is a terminal; what it was sent, which may arrive in pieces: up to a mark that is sent after it."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    monkeypatch.setattr(output, "STDOUT", slave)

    def read() -> bytes:
        os.write(slave, b"\0")
        data = b""
        while not data.endswith(b"\0"):
            data += os.read(master, 1 << 20)
        return data[:-1]

    yield read
    os.close(master)
    os.close(slave)


def test_in_a_pipe_the_bytes_are_exact(pipe: Callable[[], bytes]) -> None:
    show("你好 😀\n" + HOSTILE)
    assert pipe() == ("你好 😀\n" + HOSTILE).encode()


def test_on_a_terminal_control_characters_are_seen_and_not_obeyed(screen: Callable[[], bytes]) -> None:
    show("你好 😀\n\t" + HOSTILE)
    shown = screen().decode()
    assert shown.startswith("你好 😀\n\t\\x1b]0;title\\x07\\x1b[2J\\u009b31m\\x7f\\x00\\x0d\\u202eabc\\u2066\\u200f")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


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
    assert format_json(["你 \x1b"]) == '["你 \\u001b"]\n'


def test_text_that_is_not_text_makes_no_traceback(pipe: Callable[[], bytes]) -> None:
    """As the name of a file that is not UTF-8."""
    show(os.fsdecode(b"a\xffb"))
    show_json(os.fsdecode(b"a\xffb"))
    notice(os.fsdecode(b"a\xffb"))
    assert pipe() == b'a?b"a?b"\nmino: a\\xffb\n'  # what a hint must be pasted with, as the byte that it is


def test_a_reader_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    monkeypatch.setattr(output, "STDOUT", write_end)
    monkeypatch.setattr(output, "STDERR", write_end)
    with pytest.raises(ReaderGone):
        show("x")
    notice("nobody reads this, and the work goes on")
    stream = AnswerStream()
    with pytest.raises(ReaderGone):
        stream.show("x")
    stream.end()
    os.close(write_end)


def test_a_stdout_that_cannot_be_written_is_a_failure_but_not_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "STDOUT", os.open(os.devnull, os.O_RDONLY))
    with pytest.raises(StorageFailed, match="cannot write to stdout: Bad file descriptor"):
        show("x")
    stream = AnswerStream()
    for piece in ("一", "二"):
        stream.show(piece)
    stream.end()
    assert stream.failure and stream.failure.status == 74
    os.close(output.STDOUT)


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
    os.write(output.STDOUT, b"|")
    assert "".join(pieces).encode() + pipe() == out.encode() + b"|"


def test_a_labelled_answer_begins_on_a_line_of_its_own(pipe: Callable[[], bytes]) -> None:
    stream = AnswerStream("Assistant> ")
    stream.begin()
    assert pipe() == b"\n"  # in a pipe nothing says that an answer is waited for
    stream.show("巴")
    stream.show("黎 🗼")
    stream.end()
    assert pipe().decode() == "Assistant> 巴黎 🗼\n"
    AnswerStream().begin()
    os.write(output.STDOUT, b"|")
    assert pipe() == b"|"


def test_on_a_terminal_the_answer_takes_the_place_of_the_waiting(screen: Callable[[], bytes]) -> None:
    stream = AnswerStream("Assistant> ")
    stream.begin()
    assert screen() == b"\nAssistant> ..."
    stream.show("你")
    assert screen().decode() == "\r" + " " * 14 + "\rAssistant> 你"
    stream.end()
    assert screen() == b"\n"
    unanswered = AnswerStream("Assistant> ")
    unanswered.begin()
    unanswered.end()
    assert screen() == b"\nAssistant> ...\r" + b" " * 14 + b"\r"


@pytest.mark.parametrize(
    ("home", "session", "command", "shown"),
    [
        ("/家 目录", None, "mino history verify", "mino --home '/家 目录' history verify"),
        ("/h", "检查点 🏕", "mino ask 'q'", "mino --home '/h' --session '检查点 🏕' ask 'q'"),
        (None, "a'b", "mino history recover", "mino --session 'a'\\''b' history recover"),
        # A file is not of the conversation, and a command of `session` refuses the option.
        (None, "a", "mino history recover --salvage '/x/a.jsonl'", "mino history recover --salvage '/x/a.jsonl'"),
        ("/h", "a", "mino session list", "mino --home '/h' session list"),
        (None, "a", "mino ask x; mino session list", "mino --session 'a' ask x; mino session list"),
        # What is quoted is a name, whatever it looks like.
        ("/h", "a", "mino session load 'the mino ask one'", "mino --home '/h' session load 'the mino ask one'"),
        ("/h", "a", "ls -l '你'", "ls -l '你'"),
        (None, None, "mino history verify", "mino history verify"),
        ("", "", "mino history verify", "mino history verify"),
    ],
)
def test_a_hint_means_the_home_and_the_conversation_of_the_command(
    pipe: Callable[[], bytes], home: str | None, session: str | None, command: str, shown: str
) -> None:
    output.name_call(home, session)
    try:
        output.hint(command)
    finally:
        output.name_call(None, None)
    assert pipe().decode() == f"hint: {shown}\n"


def test_every_line_on_stderr_has_its_prefix(pipe: Callable[[], bytes]) -> None:
    notice("cannot open 'a\nb\x1b[2J': Permission denied")
    show_failure(NotFound("'你' does not exist", "ls -l '你'"))
    show_failure(MinoError("without a hint"))
    out = pipe().decode()
    assert out == (
        "mino: cannot open 'a\\x0ab\\x1b[2J': Permission denied\n"
        "mino: '你' does not exist\nhint: ls -l '你'\nmino: without a hint\n"
    )


def test_a_pipe_that_somebody_made_non_blocking_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    monkeypatch.setattr(output, "STDOUT", write_end)
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
    assert not output.is_terminal(1 << 20)
