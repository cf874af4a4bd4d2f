"""`mino history export`: the completed turns in a form for other programs and for readers."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from mino.commands.show import described_files
from mino.commands.source import read, refuse_invalid, tell_rest, with_file
from mino.errors import NotFound
from mino.formats import markdown, messages
from mino.home import Home
from mino.journal.ids import id_time
from mino.journal.order import Turn
from mino.sessions.reading import Wanted, pick
from mino.terminal import output
from mino.text import local_time

Format = Literal["markdown", "text", "messages", "responses"]


def export(
    home: Home, session: str | None, file: str | None, *, form: Format, turn: str | None, last: int | None
) -> None:
    """Print the completed turns, the `last` of them or one `turn`; stderr says how many are left out.

    Raises InvalidData if it is damaged, NotFound for a turn that is not there or not completed.
    """
    reading = read(home, session, file, Wanted())
    if reading:
        refuse_invalid(reading)
    turns = reading.turns if reading else []
    completed = [each for each in turns if each.status == "completed"]
    if turn:
        completed = [_pick_completed(turns, turn, file)]
    elif len(completed) < len(turns):
        output.notice(f"only completed turns are exported; left out: {format_left_out(turns)}")
    if last is not None and not turn:
        completed = completed[len(completed) - min(last, len(completed)) :]
    _print(completed, form)
    if reading:
        tell_rest(home, reading, file)


def format_left_out(turns: Iterable[Turn]) -> str:
    """How many of `turns` are not completed, by status: `2 failed, 1 cancelled`."""
    counts = Counter(turn.status for turn in turns)
    return ", ".join(f"{count} {status}" for status, count in counts.items() if status != "completed")


def _pick_completed(turns: Sequence[Turn], wanted: str, file: str | None) -> Turn:
    turn = pick(turns, wanted, with_file("mino history show", file))
    if turn.status != "completed":
        raise NotFound(
            f"turn {turn.number} is {turn.status}, and only completed turns are exported",
            with_file(f"mino history show --turn {turn.number}", file),
        )
    return turn


def _print(turns: Sequence[Turn], form: Format) -> None:
    if form == "responses":
        from mino.responses.request import AS_RECEIVED, context_items

        output.show_json(context_items(turns, AS_RECEIVED))
    elif form == "messages":
        pairs = ((messages.chat_content(turn.input) or turn.user, turn.assistant or "") for turn in turns)
        output.show_json(messages.messages_json(pairs))
    else:
        format_turn: Callable[[Turn], str] = _format_markdown if form == "markdown" else _format_text
        for number, turn in enumerate(turns):
            output.show(("\n" if number else "") + format_turn(turn))


def _format_markdown(turn: Turn) -> str:
    time = id_time(turn.turn_id)
    title = f"Turn {turn.number}" + (f", {local_time(time)}" if time else "")
    return markdown.format_turn(title, _question(turn), turn.assistant or "")


def _format_text(turn: Turn) -> str:
    """A turn as plain text, as `chat` showed it."""
    return f"You> {_question(turn)}\n\nAssistant> {turn.assistant or ''}\n"


def _question(turn: Turn) -> str:
    """The question, after a line for each file that was sent with it."""
    return "\n".join([*described_files(turn), turn.user])
