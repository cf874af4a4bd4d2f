"""`mino history show`: the conversation's turns, for a person or as JSON."""

from collections.abc import Iterable, Iterator
from typing import Any

from mino.commands.source import read, refuse_invalid, tell_rest, with_file
from mino.home import Home
from mino.journal.ids import id_time
from mino.journal.order import Turn
from mino.sessions.reading import Wanted, pick, shown_status
from mino.terminal import output, pager
from mino.text import local_time, rfc3339


def show(
    home: Home,
    session: str | None,
    file: str | None,
    *,
    last: int | None,
    turn: str | None,
    context: bool,
    with_salvage: bool,
    as_json: bool,
) -> None:
    """Print the turns, the `last` of them or one `turn`; with `context` what the next request starts with.

    If the file is invalid, only the turns before the damage are shown, or `with_salvage` those that a salvage would
    keep; then InvalidData is raised, unless these are all.
    """
    reading = read(home, session, file, Wanted(last if turn is None else None, context, with_salvage))
    turns = reading.turns if reading else []
    if turn is not None:
        turns = [pick(turns, turn, with_file("mino history show", file))]
    if reading is None:
        return
    if context:
        if not reading.salvaged:
            refuse_invalid(reading)
        from mino.responses.request import AS_RECEIVED, context_items

        pager.show([output.format_json(context_items(turns, AS_RECEIVED))])
    elif as_json:
        pager.show(output.format_json(turn_json(each, in_use=reading.report.in_use)) for each in turns)
    else:
        pager.show(_with_heads(turns, in_use=reading.report.in_use))
    tell_rest(home, reading, file)


def _with_heads(turns: Iterable[Turn], *, in_use: bool) -> Iterator[str]:
    """The turns as a terminal or a pipe gets them, with a blank line between two."""
    for number, turn in enumerate(turns):
        facts, newline, rest = format_turn(turn, in_use=in_use).partition("\n")
        yield ("\n" if number else "") + output.head(facts) + newline + output.shown(rest)


def format_turn(turn: Turn, *, in_use: bool) -> str:
    """A turn for a person: a line of facts, the question quoted with `> `, the answer as it is."""
    time = id_time(turn.turn_id)
    facts = [f"turn {turn.number}", local_time(time) if time else "", shown_status(turn, in_use), turn.turn_id]
    question = "".join(f"> {line}\n" for line in turn.user.split("\n"))
    answer = f"\n{turn.assistant}\n" if turn.assistant is not None else ""
    return "  ".join(filter(None, facts)) + f"\n{question}{answer}"


def turn_json(turn: Turn, *, in_use: bool) -> dict[str, Any]:
    """A turn by `schemas/turn.v1.schema.json`."""
    return {
        "number": turn.number,
        "turn_id": turn.turn_id,
        "time": rfc3339(id_time(turn.turn_id)),
        "status": shown_status(turn, in_use),
        "user": turn.user,
        "assistant": turn.assistant,
        "output": turn.output,
        "lines": [turn.first_line, turn.last_line],
    }
