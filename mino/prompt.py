"""What a person or a script says: bytes → the text of a question, and the lines of `chat` one after another."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from mino import terminal
from mino.errors import Interrupted, InvalidData, StorageFailed
from mino.responses.watch import Watch

STDIN = 0
PROMPT = "You> "

Complete = Callable[[str], tuple[str, list[str]]]
"""The text before the cursor → the word there, and all words that it may become."""


class Prompt(Protocol):
    """Where `chat` gets its questions from."""

    def read(self) -> bytes | None:
        """What is said next, without its newline; None at the end. Raises Interrupted, ReaderGone, StorageFailed."""


@contextmanager
def open_prompt(complete: Complete) -> Iterator[Prompt]:
    """A line editor where a person types and sees what is typed; else plain lines."""
    seen = terminal.is_terminal(STDIN) and terminal.is_terminal(terminal.STDOUT)
    if seen and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown"):
        from mino.editor import Editor, without_echo

        with without_echo():
            yield Editor(complete)
    else:
        yield Lines()


class Lines:
    """Plain lines of standard input. What no terminal echoes is written after `You> `, so stdout is a transcript."""

    def __init__(self) -> None:
        self._rest = b""
        self._watch = Watch(terminal.STDOUT)

    def read(self) -> bytes | None:
        """The next line. Raises Interrupted, ReaderGone, StorageFailed."""
        try:
            terminal.show(PROMPT)
            line = self._next()
        except Interrupted:
            if not terminal.is_stuck():
                terminal.show("\n")
            raise
        if line is None or not terminal.is_terminal(STDIN):
            terminal.show((line or b"").decode("utf-8", "replace") + "\n")
        return line

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


def to_text(prompt: bytes) -> str:
    """`prompt` as text. Raises InvalidData where it is not UTF-8 or has a NUL in it, with the place."""
    try:
        text = prompt.decode()
    except UnicodeDecodeError as error:
        found = f"{prompt[error.start]:#04x} at byte {error.start}"
        raise InvalidData(f"the prompt is not UTF-8: {found}", "convert it: iconv -f ENCODING -t UTF-8") from None
    if "\0" in text:
        raise InvalidData(f"the prompt has a NUL at byte {prompt.index(0)}", "remove it: tr -d '\\0'")
    return text
