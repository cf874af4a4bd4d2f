"""`mino history search`: the lines of questions and answers that have a text."""

from collections.abc import Iterator
from typing import Any

from mino.errors import MinoError, NotFound
from mino.home import Home
from mino.journal.ids import id_time
from mino.sessions import search as sessions
from mino.sessions.reading import tell_state
from mino.sessions.search import Match, compile_pattern
from mino.terminal import output, pager
from mino.text import local_time, one_line, rfc3339


def search(
    home: Home,
    session: str | None,
    text: str,
    *,
    every: bool,
    ignore_case: bool,
    is_expression: bool,
    as_json: bool,
) -> None:
    """Print each line with `text`, of the conversation or with `every` of all of them.

    Raises UsageMistake for a bad pattern, NotFound without a match, and the first failure in reading a conversation,
    or InvalidData for a damaged one, after the others were searched.
    """
    expression = compile_pattern(text, ignore_case=ignore_case, is_expression=is_expression)
    failures: list[MinoError] = []
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for where, path in sessions.conversations(home, session, output.notice, every=every):
            try:
                matches, report = sessions.search(where, path, expression)
                count += len(matches)
                for match in matches:
                    if as_json:
                        yield output.format_json(match_json(where.name, match))
                    else:
                        yield format_match((where.name or "-") if every else "", match)
                tell_state(path, report, output.notice)
            except NotFound:
                continue  # deleted meanwhile
            except MinoError as failure:
                failures.append(failure)

    pager.show(lines())
    for failure in failures[1:]:
        output.show_failure(failure)
    if failures:
        raise failures[0]
    if not count:
        raise NotFound(f"no line has '{one_line(text)}'", "" if every else "mino history search --all PATTERN")


def format_match(name: str, match: Match) -> str:
    """A match as one line, after the name of its conversation, if that is given."""
    time = id_time(match.turn_id)
    facts = [name, f"turn {match.number}", local_time(time) if time else ""]
    quote = "> " if match.role == "user" else ""
    return output.head("  ".join(filter(None, facts))) + f": {quote}{output.marked(match.line, match.spans)}\n"


def match_json(name: str | None, match: Match) -> dict[str, Any]:
    """A match by `schemas/match.v1.schema.json`."""
    return {
        "session": name,
        "number": match.number,
        "turn_id": match.turn_id,
        "time": rfc3339(id_time(match.turn_id)),
        "role": match.role,
        "line": match.line,
    }
