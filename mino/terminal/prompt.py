"""The input of a person or a script: bytes → the text of a question, and the lines of `chat` one after another."""

import errno
import os
import select
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from mino.errors import Interrupted, InvalidData, StorageFailed, UsageMistake
from mino.terminal import output
from mino.text import BYTE_ORDER_MARK
from mino.watch import Watch

STDIN = 0
PROMPT = "You> "

Complete = Callable[[str], tuple[str, list[str]]]
"""The text before the cursor → the word there, and all words that it may become."""


class Prompt(Protocol):
    """The source of the questions of `chat`."""

    def read(self) -> bytes | None:
        """The next input, without its newline; None at the end. Raises Interrupted, ReaderGone, StorageFailed."""

    def recall(self, earlier: Iterable[str]) -> None:
        """Offer `earlier` input, the oldest first, in place of what was typed before."""


class Lines:
    """Plain lines of standard input. A line that no terminal echoes is shown after `You> `: stdout is a transcript."""

    def __init__(self) -> None:
        self._rest = b""
        self._watch = Watch(output.STDOUT)

    def read(self) -> bytes | None:
        """The next line. Raises Interrupted, ReaderGone, StorageFailed."""
        try:
            output.show(PROMPT)
            line = self._next()
        except Interrupted:
            if not output.is_stuck():
                output.show("\n")
            raise
        if line is None or not output.is_terminal(STDIN):
            output.show((line or b"").decode("utf-8-sig", "replace") + "\n")
        return line

    def recall(self, earlier: Iterable[str]) -> None:
        """Nothing is recalled without a line editor, and so nothing of `earlier` is read."""

    def _next(self) -> bytes | None:
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            piece = self._piece()
            if not piece:
                self._rest = b""
                return b"".join(pieces) or None
            pieces.append(piece)
        end, _, self._rest = pieces.pop().partition(b"\n")
        return b"".join([*pieces, end]).removesuffix(b"\r")

    def _piece(self) -> bytes:
        while not self._watch.wait(3600, STDIN):
            pass
        try:
            return os.read(STDIN, 65536)
        except OSError as error:
            if error.errno == errno.EIO:  # the terminal is gone
                return b""
            raise StorageFailed(f"cannot read standard input: {error.strerror}") from None


def read_prompt(words: Sequence[str], *, attaches_input: bool = False) -> str:
    """The question: the words, and standard input too if one of them is `-`, or if there are none.

    With words alone standard input is not read: it has the loop's lines in `while read`, and may be a pipe that never
    ends under a supervisor. With `attaches_input` it is a file's content. Raises UsageMistake for no question,
    InvalidData if it is not text.
    """
    spoken = b" ".join(os.fsencode(word.removeprefix(BYTE_ORDER_MARK)) for word in words if word != "-")
    prompt = spoken
    if not words or "-" in words:
        if not words and output.is_terminal(STDIN):
            raise UsageMistake("no question was given", "mino ask 'QUESTION'")
        read = _without_newlines(read_stdin().removeprefix(BYTE_ORDER_MARK.encode()))
        prompt = b"\n\n".join(filter(None, (spoken, read)))
    elif not attaches_input and output.is_terminal(output.STDERR) and _is_pipe():
        output.notice("standard input is not read; - reads it")
    text = to_text(prompt)
    if not text.strip():
        raise UsageMistake("the question is empty", "mino ask 'QUESTION'")
    return text


def read_stdin() -> bytes:
    """All of standard input. Raises StorageFailed if it cannot be read."""
    return b"".join(stdin_chunks())


def stdin_chunks() -> Iterator[bytes]:
    """Standard input, piece by piece. Raises StorageFailed if it cannot be read."""
    while True:
        try:
            piece = os.read(STDIN, 1 << 17)
        except BlockingIOError:
            # Another program made this pipe non-blocking; `sys.stdin` would take the part that is there for all of it.
            select.select([STDIN], [], [])
            continue
        except OSError as error:
            raise StorageFailed(f"cannot read standard input: {error.strerror}") from None
        if not piece:
            return
        yield piece


def _is_pipe() -> bool:
    """Whether standard input is a pipe, as in `ls | mino ask …`."""
    with suppress(OSError):
        return stat.S_ISFIFO(os.fstat(STDIN).st_mode)
    return False


def _without_newlines(data: bytes) -> bytes:
    """`data` without the newlines at its end, `\\r\\n` included."""
    end = len(data)
    while data[end - 1 : end] == b"\n":  # an index, because a copy at each step would take quadratic time
        end -= 2 if data[end - 2 : end - 1] == b"\r" else 1
    return data[:end]


def to_text(prompt: bytes) -> str:
    """`prompt` as text, without a byte order mark.

    Raises InvalidData, with the place, if it is not UTF-8 or has a NUL in it.
    """
    try:
        text = prompt.decode()
    except UnicodeDecodeError as error:
        found = f"{prompt[error.start]:#04x} at byte {error.start}"
        raise InvalidData(f"the question is not UTF-8: {found}", "convert it: iconv -f ENCODING -t UTF-8") from None
    if "\0" in text:
        raise InvalidData(f"the question has a NUL at byte {prompt.index(0)}", "remove it: tr -d '\\0'")
    return text.removeprefix(BYTE_ORDER_MARK)
