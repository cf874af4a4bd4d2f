"""The files that a person attaches to a question: read once, whole, before anything is saved or sent."""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Any

from mino import disk
from mino.errors import InvalidData
from mino.responses.parts import file_parts, format_size
from mino.terminal.prompt import stdin_chunks
from mino.text import shell_word

STANDARD_INPUT = "-"
MOST_BYTES = 20_000_000  # of all files of a question


class Attached:
    """The files that go with one question; `parts` are what is sent of them."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self._left = MOST_BYTES

    def add(self, path: str) -> list[dict[str, Any]]:
        """Read the file at `path`, `-` being standard input; returns its parts.

        Raises NotFound, AccessRefused and StorageFailed, and InvalidData for what cannot be sent, and for too much.
        """
        data = _read(path, self._left)
        parts = file_parts("standard input" if path == STANDARD_INPUT else os.path.basename(path), data)
        self._left -= len(data)
        self.parts += parts
        return parts

    def drop(self) -> None:
        """Forget the files."""
        self.parts, self._left = [], MOST_BYTES


def read_attachments(paths: Iterable[str]) -> list[dict[str, Any]]:
    """The content parts of the files at `paths`. Raises as `Attached.add`."""
    attached = Attached()
    for path in paths:
        attached.add(path)
    return attached.parts


def _read(path: str, left: int) -> bytes:
    pieces: list[bytes] = []
    for piece in _chunks(path):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:  # a pipe may never end
            most = format_size(MOST_BYTES)
            what = "standard input" if path == STANDARD_INPUT else f"'{path}'"
            raise InvalidData(f"the files have more than {most}, with {what}", "send fewer of them, or smaller ones")
    return b"".join(pieces)


def _chunks(path: str) -> Iterator[bytes]:
    if path == STANDARD_INPUT:
        yield from stdin_chunks()
        return
    if os.path.exists(path) and not (os.path.isfile(path) or stat.S_ISFIFO(os.stat(path).st_mode)):
        raise InvalidData(f"'{path}' is neither a regular file nor a pipe", f"ls -ld {shell_word(path)}")
    fd = disk.open_readable(path)
    try:
        yield from disk.chunks(fd, path)
    finally:
        os.close(fd)
