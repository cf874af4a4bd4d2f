"""`mino ask`: one question, one answer, one exit status."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from mino import turn
from mino.context import tell_context, tell_size
from mino.home import Home
from mino.journal.findings import refuse_invalid
from mino.model import first_step, name_model, open_model, read_instructions
from mino.responses.answer import Answer
from mino.responses.request import Request, context_items, newest
from mino.sessions.conversation import open_conversation
from mino.sessions.reading import IN_USE, read_session
from mino.settings import Settings
from mino.terminal import output
from mino.terminal.prompt import read_prompt

WAYS_OUT = "mino history compact sums up older turns; --context 64kB sends only the newest ones"


def ask(
    home: Home | None,
    session: str | None,
    settings: Settings,
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    history: bool,
    as_json: bool,
) -> None:
    """Ask the question in `words` and show the answer; without `history` neither read nor write any.

    Raises a MinoError with the exit status of the failure (mino(1), EXIT STATUS).
    """
    question = read_prompt(words)
    instructions = read_instructions(home, settings)
    with open_model(settings, environ) as model:
        limit = settings.context
        opened = (
            open_conversation(home, session, settings.wait, output.notice, limit.turns)
            if home and history
            else nullcontext(None)
        )
        with opened as conversation:
            context = newest(conversation.context, limit.size) if conversation else []
            request = Request(model.name, instructions, context, question, _send_less(len(context)))
            format_whole = partial(format_answer, conversation.place.name if conversation else None)
            turn.run(conversation, model.client, request, output.AnswerStream(), format_whole if as_json else None)
    if conversation and output.is_terminal(output.STDERR):
        # `ask` does not know what was said before, but only one question reaches each number; where the context is
        # limited, many could.
        turns = len(newest(conversation.context, limit.size))
        if turns == len(conversation.context):
            tell_size(len(context), turns, settings.warn_turns, WAYS_OUT)


def _send_less(turns: int) -> str:
    """What to run if the context of so many `turns` is too much for the model."""
    if not turns:
        return ""
    fewer = min(10, turns // 2) or "none"
    return f"--context {fewer} sends fewer turns; mino session new starts a new conversation"


def dry_run(home: Home | None, session: str | None, settings: Settings, words: Sequence[str], *, history: bool) -> None:
    """Print the request body that `ask` would send; it sends nothing, writes nothing, and needs no key."""
    question = read_prompt(words)
    instructions = read_instructions(home, settings)
    limit, reading = settings.context, None
    if home and history:
        reading = read_session(home, session, output.notice, limit.turns, completed=True)
    if reading:
        refuse_invalid(reading.path, reading.report)
        if reading.report.in_progress:
            output.notice(IN_USE)
    context, step = newest(reading.turns if reading else (), limit.size), first_step(settings)
    output.show_json(Request(name_model(settings), instructions, context, question).body(step))
    tell_context(len(context), context_items(context, step), reading.report.turns if reading else {})


def format_answer(session: str | None, turn_id: str | None, answer: Answer) -> str:
    """`answer` as one line of JSON; `session` is the conversation's name, `turn_id` None if the turn is not saved."""
    return output.format_json(answer_json(session, turn_id, answer))


def answer_json(session: str | None, turn_id: str | None, answer: Answer) -> dict[str, Any]:
    """`answer` by `schemas/answer.v1.schema.json`."""
    return {
        "turn_id": turn_id,
        "session": session,
        "status": answer.status,
        "text": answer.text,
        "refusal": answer.refusal,
        "model": answer.model,
        "response_id": answer.response_id,
        "usage": answer.usage,
        "output": answer.output,
    }
