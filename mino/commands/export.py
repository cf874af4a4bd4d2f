"""`mino history export`: the completed turns in a form for other programs and for readers."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from mino import terminal
from mino.commands.show import local_time, pick, tell_state
from mino.conversation import read_session
from mino.errors import NotThere
from mino.home import Home
from mino.journal.order import Turn
from mino.journal.record import id_time
from mino.journal.recovery import refuse_invalid

Format = Literal["markdown", "text", "messages", "responses"]

_LINE_ENDING = re.compile(r"\r\n|\r|\n")


def export(home: Home, *, form: Format, turn: str | None, last: int | None) -> None:
    """Print the completed turns of the session, the `last` of them or one `turn`; on stderr how many were left out.

    Raises InvalidData where the session is damaged, NotThere for a turn that is not there or not completed.
    """
    reading = read_session(home)
    if reading:
        refuse_invalid(reading.path, reading.report)
    else:
        terminal.notice("there is no conversation yet")
    turns = reading.turns if reading else []
    completed = [each for each in turns if each.status == "completed"]
    if turn:
        completed = [_pick_completed(turns, turn)]
    elif len(completed) < len(turns):
        others = {each.status: sum(other.status == each.status for other in turns) for each in turns}
        listed = ", ".join(f"{count} {status}" for status, count in others.items() if status != "completed")
        terminal.notice(f"only completed turns are exported; left out: {listed}")
    if last is not None and not turn:
        completed = completed[len(completed) - min(last, len(completed)) :]
    _print(completed, form)
    if reading:
        tell_state(reading.path, reading.report)


def _pick_completed(turns: Sequence[Turn], wanted: str) -> Turn:
    turn = pick(turns, wanted)
    if turn.status != "completed":
        raise NotThere(
            f"turn {turn.number} is {turn.status}, and only completed turns are exported",
            f"mino history show --turn {turn.number}",
        )
    return turn


def _print(turns: Sequence[Turn], form: Format) -> None:
    if form == "responses":
        from mino.responses.request import AS_RECEIVED, context_items

        terminal.show_json(context_items(turns, AS_RECEIVED))
    elif form == "messages":
        pairs = ((("user", turn.user), ("assistant", turn.assistant or "")) for turn in turns)
        terminal.show_json([{"role": role, "content": content} for pair in pairs for role, content in pair])
    else:
        write = write_markdown if form == "markdown" else write_text
        for number, turn in enumerate(turns):
            terminal.show(("\n" if number else "") + write(turn))


def write_markdown(turn: Turn) -> str:
    """A turn as CommonMark: a heading, and both texts in block quotes.

    A block quote ends every construct inside it (CommonMark section 5.1), so that no heading, open fence or comment
    in a text can swallow or imitate what comes after it.
    """
    time = id_time(turn.turn_id)
    heading = f"## Turn {turn.number}" + (f", {local_time(time)}" if time else "")
    return f"{heading}\n\n**You**\n\n{_quote(turn.user)}\n**Assistant**\n\n{_quote(turn.assistant or '')}"


def _quote(text: str) -> str:
    # A lone carriage return ends a line too (CommonMark section 2.1).
    lines: Iterator[str] = (f"> {line}".rstrip(" ") + "\n" for line in _LINE_ENDING.split(text.rstrip("\r\n")))
    return "".join(lines)


def write_text(turn: Turn) -> str:
    """A turn as plain text, as `chat` showed it."""
    return f"You> {turn.user}\n\nAssistant> {turn.assistant or ''}\n"
