"""`mino history show`: the conversation's turns, for a person or as JSON."""

from collections.abc import Iterable, Iterator
from typing import Any

from mino.commands.source import read, refuse_invalid, tell_rest, with_file
from mino.home import Home
from mino.journal.ids import id_time
from mino.journal.order import Turn
from mino.sessions.reading import Wanted, pick, shown_status
from mino.settings import Settings
from mino.terminal import output, pager
from mino.text import local_time, one_line, rfc3339


def show(
    home: Home,
    session: str | None,
    file: str | None,
    *,
    last: int | None,
    turn: str | None,
    with_salvage: bool,
    as_json: bool,
) -> None:
    """Print the turns, the `last` of them or one `turn`.

    If the file is invalid, only the turns before the damage are shown, or `with_salvage` those that a salvage would
    keep; then InvalidData is raised, unless these are all.
    """
    reading = read(home, session, file, Wanted(last if turn is None else None, with_salvage=with_salvage))
    turns = reading.turns if reading else []
    if turn is not None:
        turns = [pick(turns, turn, with_file("mino history show", file))]
    if reading is None:
        return
    if as_json:
        pager.show(output.format_json(turn_json(each, in_use=reading.report.in_use)) for each in turns)
    else:
        pager.show(_with_heads(turns, in_use=reading.report.in_use))
    tell_rest(home, reading, file)


def show_context(
    home: Home,
    session: str | None,
    file: str | None,
    settings: Settings,
    *,
    last: int | None,
    turn: str | None,
    with_salvage: bool,
) -> None:
    """Print what the next request would start with by `settings`; of that the `last` turns, or any completed `turn`.

    Raises InvalidData if the file is invalid, unless a salvage is wanted: no request starts with what stands before
    the damage.
    """
    from mino.context import tell_context
    from mino.model import first_step
    from mino.responses.request import context_items, newest

    limit = settings.context
    keep = None if turn else min((each for each in (last, limit.turns) if each is not None), default=None)
    reading = read(home, session, file, Wanted(keep, completed=True, with_salvage=with_salvage))
    if turn:
        turns = [pick(reading.turns if reading else [], turn, with_file("mino history show", file))]
    elif reading:
        turns = newest(reading.turns, limit.size)
    if reading is None:
        return
    if not reading.salvaged:
        refuse_invalid(reading)
    items = context_items(turns, first_step(settings))
    pager.show([output.format_json(items)])
    tell_context(len(turns), items, reading.report.turns)
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
    if turn.model is not None or turn.usage:
        from mino.responses.usage import format_usage

        spent = format_usage(turn.usage, in_full=False)
        facts.append(", ".join(filter(None, (one_line(turn.model or "", 60), spent))))
    question = "".join(f"> {line}\n" for line in (*described_files(turn), *turn.user.split("\n")))
    answer = f"\n{turn.assistant}\n" if turn.assistant is not None else ""
    return "  ".join(filter(None, facts)) + f"\n{question}{answer}"


def described_files(turn: Turn) -> list[str]:
    """A line for each file that was sent with the question."""
    if not turn.input:
        return []
    from mino.responses.parts import describe

    return list(describe(turn.input))


def turn_json(turn: Turn, *, in_use: bool) -> dict[str, Any]:
    """A turn by `schemas/turn.v1.schema.json`."""
    return {
        "number": turn.number,
        "turn_id": turn.turn_id,
        "time": rfc3339(id_time(turn.turn_id)),
        "status": shown_status(turn, in_use),
        "user": turn.user,
        "input": turn.input,
        "assistant": turn.assistant,
        "output": turn.output,
        "model": turn.model,
        "usage": turn.usage,
        "lines": [turn.first_line, turn.last_line],
    }
