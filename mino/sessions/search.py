"""Searching the texts of conversations, line by line (mino-history(1), `search`). It never writes."""

import os
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from mino import disk
from mino.errors import UsageMistake
from mino.home import Home
from mino.journal.findings import Report
from mino.journal.loader import Loading
from mino.journal.lock import lock_shared
from mino.journal.order import Turn
from mino.sessions import saved
from mino.sessions.place import Place, find
from mino.sessions.reading import open_for_reading
from mino.text import Tell, one_line

_READ = 1 << 20  # bytes that are read between two pauses, and so about what is held


class Pattern(NamedTuple):
    """What is searched for in a line: a text, as an expression that stands for it, or an expression of the user's."""

    expression: re.Pattern[str]
    is_text: bool

    def find(self, text: str) -> Iterator[str]:
        """The lines of `text` that have it, without their newlines."""
        # Most texts do not have it, and the whole is searched faster than its lines. Only a text allows that: a
        # lookahead, or `\Z`, sees in the whole what it does not see in a line.
        if not self.is_text or self.expression.search(text):
            yield from filter(self.expression.search, text.split("\n"))

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        """Where `line` has it: each time the first character, and the one after it."""
        return (found.span() for found in self.expression.finditer(line))


class Found(NamedTuple):
    """A turn, and its lines that have the pattern, in order; at least one."""

    turn: Turn
    lines: list[tuple[Literal["user", "assistant"], str]]


def compile_pattern(text: str, *, ignore_case: bool, is_expression: bool) -> Pattern:
    """The pattern `text`: a text, or a regular expression of Python's `re`. Raises UsageMistake."""
    if not text or "\n" in text:
        raise UsageMistake("the pattern is empty" if not text else "the pattern has more than one line")
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    try:
        return Pattern(re.compile(text if is_expression else re.escape(text), flags), not is_expression)
    except (re.error, RecursionError, OverflowError) as error:
        where = f" at character {error.pos + 1}" if isinstance(error, re.error) and error.pos is not None else ""
        reason = error.msg if isinstance(error, re.error) else str(error)
        raise UsageMistake(f"bad regular expression '{one_line(text)}': {reason}{where}") from None


def conversations(home: Home, session: str | None, tell: Tell, *, every: bool) -> Iterator[tuple[Place, str]]:
    """The conversation called `session`, or the current one, with its path; or `every` one. Raises as `place.find`."""
    if not every:
        place, path = find(home, session, tell)
        if path:
            yield place, path
        return
    unnamed = Place(home, None)
    yield from ((unnamed, os.path.join(home.sessions, name)) for name in unnamed.session_names())
    yield from ((Place(home, name), saved.path_of(home.saved, name)) for name in saved.names(home.saved))


class Search:
    """One search of the file at `path`, as an iterable of what is found; `report` is complete when that has ended.

    Turns are read under the lock, some at a time, and then searched and given without it: neither a pager that waits
    nor an expression that never ends stops a writer. Iterating raises as `disk.opened` does.
    """

    def __init__(self, place: Place, path: str, pattern: Pattern) -> None:
        self.report = Report()
        self._place = place
        self._path = path
        self._pattern = pattern

    def __iter__(self) -> Iterator[Found]:
        with disk.opened(self._path) as fd:
            loading = Loading(disk.chunks(fd, self._path))
            turns = iter(loading)
            batches = 0
            more = True
            while more:
                batch, more, in_use = self._read(turns, fd)
                batches += 1
                for turn in batch:
                    if lines := self._find(turn):
                        yield Found(turn, lines)
        self.report = loading.report
        if batches > 1 and self.report.findings:
            # A writer may have recovered the end in a pause, when a part of it had been read: that part is nothing now.
            with open_for_reading(self._place, self._path) as (fd, is_held):
                self.report, in_use = Loading(disk.chunks(fd, self._path)).judge(), is_held
        if in_use:
            self.report.tolerate_writer()

    def _read(self, turns: Iterator[Turn], fd: int) -> tuple[list[Turn], bool, bool]:
        """The next turns, whether more may follow, and whether a writer has the conversation."""
        lock = lock_shared(self._place.lock)
        batch: list[Turn] = []
        end = os.lseek(fd, 0, os.SEEK_CUR) + _READ
        try:
            for turn in turns:
                batch.append(turn)
                if os.lseek(fd, 0, os.SEEK_CUR) >= end:
                    return batch, True, lock is None
            return batch, False, lock is None
        finally:
            if lock:
                lock.close()

    def _find(self, turn: Turn) -> list[tuple[Literal["user", "assistant"], str]]:
        lines: list[tuple[Literal["user", "assistant"], str]]
        lines = [("user", line) for line in self._pattern.find(turn.user)]
        if turn.assistant is not None:
            lines += (("assistant", line) for line in self._pattern.find(turn.assistant))
        return lines
