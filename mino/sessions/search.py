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
from mino.journal.order import Turn
from mino.sessions import saved
from mino.sessions.place import Place, find
from mino.sessions.reading import open_for_reading
from mino.text import Tell, one_line


class Match(NamedTuple):
    """A line of a question or an answer that has the pattern; a span is the first character, and the one after it."""

    number: int
    turn_id: str
    role: Literal["user", "assistant"]
    line: str
    spans: list[tuple[int, int]]


def compile_pattern(text: str, *, ignore_case: bool, is_expression: bool) -> re.Pattern[str]:
    """The pattern `text`: a text, or a regular expression of Python's `re`. Raises UsageMistake."""
    if not text or "\n" in text:
        raise UsageMistake("the pattern is empty" if not text else "the pattern has more than one line")
    try:
        return re.compile(text if is_expression else re.escape(text), re.IGNORECASE if ignore_case else 0)
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


def search(place: Place, path: str, expression: re.Pattern[str]) -> tuple[list[Match], Report]:
    """The matches in the file at `path`, and the report on it. Only one turn is held at a time.

    The lock is released before the caller prints anything. Raises as `disk.opened` does.
    """
    with open_for_reading(place, path) as (fd, in_use):
        loading = Loading(disk.chunks(fd, path))
        matches = [match for turn in loading for match in _in_turn(turn, expression)]
        if in_use:
            loading.report.tolerate_writer()
    return matches, loading.report


def _in_turn(turn: Turn, expression: re.Pattern[str]) -> Iterator[Match]:
    texts: tuple[tuple[Literal["user", "assistant"], str | None], ...] = (
        ("user", turn.user),
        ("assistant", turn.assistant),
    )
    for role, text in texts:
        for line in [] if text is None else text.split("\n"):
            if spans := [found.span() for found in expression.finditer(line)]:
                yield Match(turn.number, turn.turn_id, role, line, spans)
