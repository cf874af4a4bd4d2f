"""`mino history show`: the session's turns, for a person or as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mino import terminal
from mino.conversation import read_session, tell_in_use
from mino.errors import NotThere, UsageMistake
from mino.home import Home
from mino.journal.findings import Report
from mino.journal.order import Turn
from mino.journal.record import id_time
from mino.journal.recovery import advice, place, refuse_invalid

MIN_ID_DIGITS = 8  # fewer digits, and no letter, are the number of a turn


def show(home: Home, *, last: int | None, turn: str | None, context: bool, as_json: bool) -> int:
    """Print the session's turns, the `last` of them or one `turn`; with `context` what the next request starts with.

    The exit status: 0, or 65 for an invalid file, of which only what stands before the damage is shown.
    """
    reading = read_session(home, last if turn is None else None, completed=context)
    turns = reading.turns if reading else []
    if turn is not None:
        turns = [pick(turns, turn)]
    if reading is None:
        terminal.notice("there is no conversation yet")
        return 0
    path, _, report = reading
    if context:
        refuse_invalid(path, report)
        from mino.responses.request import AS_RECEIVED, context_items

        terminal.show_json(context_items(turns, AS_RECEIVED))
        return tell_state(path, report)
    for number, each in enumerate(turns):
        if as_json:
            terminal.show_json(describe_turn(each, in_use=report.in_use))
        else:
            terminal.show(("\n" if number else "") + write_turn(each, in_use=report.in_use))
    return tell_state(path, report)


def tell_state(path: str, report: Report) -> int:
    """Say on stderr what is not clean about the session; the exit status of that."""
    if report.in_use:
        tell_in_use()
    if report.state == "invalid":
        finding = report.worst
        terminal.notice(place(path, finding))
        terminal.hint(advice(path, finding))
        return 65
    for finding in report.findings:
        terminal.notice(f"{place(path, finding)}; the next question recovers it")
    return 0


def pick(turns: Sequence[Turn], wanted: str) -> Turn:
    """The turn that `wanted` names: its number, its id, or an unambiguous beginning of its id.

    Raises NotThere, or UsageMistake where more than one begins so.
    """
    if wanted.isdecimal():
        for turn in turns:
            if str(turn.number) == wanted:
                return turn
    found = [turn for turn in turns if begins(turn.turn_id, wanted)]
    if len(found) > 1:
        numbers = ", ".join(str(turn.number) for turn in found[:10])
        raise UsageMistake(f"'{wanted}' is the beginning of more than one turn: {numbers}", "name it by its number")
    if not found:
        raise NotThere(f"there is no turn '{terminal.one_line(wanted)}'", "mino history show")
    return found[0]


def begins(turn_id: str, wanted: str) -> bool:
    """Whether `wanted` is a beginning of `turn_id`.

    A few digits are a number and nothing else: `forget 0` must not take the only turn there is.
    """
    is_number = wanted.isdecimal() and len(wanted) < MIN_ID_DIGITS
    return bool(wanted) and not is_number and turn_id.startswith(wanted.lower())


def shown_status(turn: Turn, in_use: bool) -> str:
    """The status as `show` prints it: the open turn of a session that a writer holds is in progress."""
    return "in-progress" if in_use and turn.status == "open" else turn.status


def write_turn(turn: Turn, *, in_use: bool) -> str:
    """A turn for a person: a line of facts, the question quoted with `> `, the answer as it is."""
    time = id_time(turn.turn_id)
    facts = [f"turn {turn.number}", local_time(time) if time else "", shown_status(turn, in_use), turn.turn_id]
    question = "".join(f"> {line}\n" for line in turn.user.split("\n"))
    answer = f"\n{turn.assistant}\n" if turn.assistant is not None else ""
    return "  ".join(filter(None, facts)) + f"\n{question}{answer}"


def local_time(time: datetime) -> str:
    """`time` in the user's time zone, to the second."""
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def rfc3339(time: datetime | None) -> str | None:
    """`time`, which is in UTC, by RFC 3339 to the millisecond; None where it is not known."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z" if time else None


def describe_turn(turn: Turn, *, in_use: bool) -> dict[str, Any]:
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
