"""Bytes → the text of a question; the words and standard input; the lines of `chat`."""

import os
import pty
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from mino.errors import InvalidData, MinoError, ReaderGone, StorageFailed, UsageMistake
from mino.terminal import output, prompt
from mino.terminal.prompt import Lines, read_prompt, read_stdin, to_text

Feed = Callable[[bytes], None]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Feed]:
    """Standard input is a pipe; puts bytes into it, and nothing comes after them."""
    read_end, write_end = os.pipe()
    monkeypatch.setattr(prompt, "STDIN", read_end)

    def put(data: bytes) -> None:
        os.write(write_end, data)
        os.close(write_end)

    yield put
    os.close(read_end)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is not open: whoever touches it fails."""
    monkeypatch.setattr(prompt, "STDIN", 1 << 20)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Standard output is a pipe; what was written to it."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    monkeypatch.setattr(output, "STDOUT", write_end)
    yield lambda: os.read(read_end, 1 << 20).decode()
    os.close(read_end)
    os.close(write_end)


def test_text_is_what_it_was() -> None:
    text = "你好 🐕\r\n\u2028\x1b[1m\t"
    assert to_text(text.encode()) == text


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        (b"\xff", "0xff at byte 0"),
        ("好".encode() + b"\xe5\xa5", "0xe5 at byte 3"),
        (b"a\xed\xa0\xbd", "0xed at byte 1"),  # half of a surrogate pair is no character (RFC 3629 section 3)
        ("好".encode() + b"\0", "NUL at byte 3"),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(prompt: bytes, found: str) -> None:
    with pytest.raises(InvalidData, match=found):
        to_text(prompt)


@pytest.mark.parametrize(
    ("words", "question"),
    [(["巴黎在", "哪里？ 🗼"], "巴黎在 哪里？ 🗼"), ([" a ", "b\n"], " a  b\n"), (["--", "-x"], "-- -x")],
)
@pytest.mark.usefixtures("closed")
def test_words_alone_leave_standard_input_alone(words: Sequence[str], question: str) -> None:
    assert read_prompt(words) == question


@pytest.mark.parametrize(
    ("words", "read", "question"),
    [
        ([], "问题 🐢", "问题 🐢"),
        ([], " a\r\n\r\n\n", " a"),
        (["-"], "a\n b\n", "a\n b"),
        (["What", "is this?", "-"], "你好\n", "What is this?\n\n你好"),
        (["-", "What?"], "\n\n", "What?"),
    ],
)
def test_standard_input_comes_after_the_words(feed: Feed, words: Sequence[str], read: str, question: str) -> None:
    feed(read.encode())
    assert read_prompt(words) == question


@pytest.mark.parametrize(
    ("words", "read", "failure"),
    [
        ([], b"", UsageMistake),
        (["-"], b" \r\n\n", UsageMistake),
        ([" ", ""], b"x", UsageMistake),
        ([], b"a\xff", InvalidData),
        ([os.fsdecode(b"\xff")], b"x", InvalidData),
    ],
)
def test_no_question_or_no_text_is_refused(
    feed: Feed, words: Sequence[str], read: bytes, failure: type[MinoError]
) -> None:
    feed(read)
    with pytest.raises(failure) as caught:
        read_prompt(words)
    assert caught.value.hint


def test_a_person_who_gave_no_question_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    monkeypatch.setattr(prompt, "STDIN", slave)
    with pytest.raises(UsageMistake, match="no question was given"):
        read_prompt([])
    os.close(master)
    os.close(slave)


@pytest.mark.usefixtures("closed")
def test_a_standard_input_that_cannot_be_read_is_told() -> None:
    for read in (read_stdin, Lines().read):
        with pytest.raises(StorageFailed, match="cannot read standard input: Bad file descriptor"):
            read()


def test_a_pipe_that_somebody_made_non_blocking_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    monkeypatch.setattr(prompt, "STDIN", read_end)
    data = "法 🐕\n".encode() * 50_000

    def write_all() -> None:
        with open(write_end, "wb") as pipe:
            pipe.write(data)

    writer = threading.Thread(target=write_all)
    writer.start()
    assert read_stdin() == data
    writer.join()
    os.close(read_end)


def test_the_lines_of_a_script_are_a_transcript(feed: Feed, shown: Callable[[], str]) -> None:
    feed("你好 🐕\r\n\nlast".encode())
    lines = Lines()
    assert [lines.read() for _ in range(4)] == ["你好 🐕".encode(), b"", b"last", None]
    assert shown() == "You> 你好 🐕\nYou> \nYou> last\nYou> \n"


def test_a_byte_order_mark_is_no_part_of_a_text_nor_of_a_transcript(feed: Feed, shown: Callable[[], str]) -> None:
    mark = b"\xef\xbb\xbf"
    assert to_text(mark + b"q" + mark) == "q\ufeff" and to_text(mark) == ""
    feed(mark + b"/help\n" + mark + b"q")
    lines = Lines()
    assert [to_text(lines.read() or b"") for _ in range(2)] == ["/help", "q"]
    assert shown() == "You> /help\nYou> q\n"


def test_a_line_comes_as_soon_as_it_is_whole(monkeypatch: pytest.MonkeyPatch, shown: Callable[[], str]) -> None:
    read_end, write_end = os.pipe()
    monkeypatch.setattr(prompt, "STDIN", read_end)
    lines = Lines()
    os.write(write_end, "一\n二".encode())
    assert lines.read() == "一".encode()
    os.write(write_end, b"\n")
    assert lines.read() == "二".encode()
    assert shown() == "You> 一\nYou> 二\n"
    os.close(write_end)
    os.close(read_end)


def test_nobody_is_waited_for_when_the_reader_of_stdout_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin, held_open = os.pipe()
    read_end, write_end = os.pipe()
    monkeypatch.setattr(prompt, "STDIN", stdin)
    monkeypatch.setattr(output, "STDOUT", write_end)
    lines = Lines()
    threading.Timer(0.05, os.close, [read_end]).start()
    late = threading.Timer(20, os.write, [held_open, b"\n"])  # ends the test if the reader is not noticed
    late.start()
    with pytest.raises(ReaderGone):
        lines.read()
    assert late.is_alive()
    late.cancel()
    late.join()
    for fd in (stdin, held_open, write_end):
        os.close(fd)
