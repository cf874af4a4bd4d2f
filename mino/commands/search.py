"""`mino history search`: the lines of questions and answers that have a text."""

from collections.abc import Iterator
from typing import Any

from mino.errors import MinoError, NotFound
from mino.home import Home
from mino.journal.ids import id_time
from mino.sessions.reading import tell_state
from mino.sessions.search import Found, Pattern, Search, compile_pattern, conversations
from mino.terminal import output, pager
from mino.text import local_time, one_line, rfc3339, shell_word


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
    pattern = compile_pattern(text, ignore_case=ignore_case, is_expression=is_expression)
    places = list(conversations(home, session, output.notice, every=every))
    failures: list[MinoError] = []
    is_found = False

    def pieces() -> Iterator[str]:
        nonlocal is_found
        for where, path in places:
            searching = Search(where, path, pattern)
            try:
                for found in searching:
                    is_found = True
                    if as_json:
                        yield "".join(map(output.format_json, found_json(where.name, found)))
                    else:
                        yield format_found((where.name or "-") if every else "", found, pattern)
                tell_state(path, searching.report, output.notice)
            except NotFound:
                continue  # deleted meanwhile
            except MinoError as failure:
                failures.append(failure)

    pager.show(pieces())
    for failure in failures[1:]:
        output.show_failure(failure)
    if failures:
        raise failures[0]
    if not is_found:
        options = "-i " * ignore_case + "-E " * is_expression + "-- " * text.startswith("-")
        hint = f"mino history search --all {options}{shell_word(text)}"
        raise NotFound(f"no line has '{one_line(text)}'", "" if every else hint)


def format_found(name: str, found: Found, pattern: Pattern) -> str:
    """The lines that were found in a turn, each after the name of its conversation, if that is given, and the turn."""
    time = id_time(found.turn.turn_id)
    facts = [name, f"turn {found.turn.number}", local_time(time) if time else ""]
    head = output.head("  ".join(filter(None, facts)))
    return "".join(
        f"{head}: {'> ' if role == 'user' else ''}{output.marked(line, pattern.spans(line))}\n"
        for role, line in found.lines
    )


def found_json(name: str | None, found: Found) -> Iterator[dict[str, Any]]:
    """The lines that were found in a turn, each by `schemas/match.v1.schema.json`."""
    turn = found.turn
    for role, line in found.lines:
        yield {
            "session": name,
            "number": turn.number,
            "turn_id": turn.turn_id,
            "time": rfc3339(id_time(turn.turn_id)),
            "role": role,
            "line": line,
        }
