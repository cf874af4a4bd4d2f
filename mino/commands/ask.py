"""`mino ask`: one question, one answer, one exit status."""

import os
import select
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from mino import terminal, turn
from mino.conversation import open_conversation, read_session, tell_in_use, tell_size
from mino.errors import StorageFailed, UsageMistake
from mino.home import Home
from mino.journal.recovery import refuse_invalid
from mino.model import first_step, name_model, open_model, read_instructions
from mino.prompt import STDIN, to_text
from mino.responses.answer import Answer
from mino.responses.request import ContextTurn, Request
from mino.settings import Settings


def ask(
    home: Home | None,
    settings: Settings,
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    history: bool,
    as_json: bool,
) -> None:
    """Ask the question in `words` and show the answer; without `history` neither read nor write any.

    Raises a MinoError with the exit status of whatever went wrong (spec section 10).
    """
    question = read_prompt(words)
    instructions = read_instructions(home, settings)
    with open_model(settings, environ) as model:
        opened = open_conversation(home, settings.wait, settings.context) if home and history else nullcontext(None)
        with opened as conversation:
            context = list(conversation.context) if conversation else []
            request = Request(model.name, instructions, context, question)
            stream = terminal.AnswerStream()
            try:
                turn_id, answer = turn.run(conversation, model.client, request, None if as_json else stream.show)
            finally:
                stream.end()
        if as_json:
            stream.show(write_answer(turn_id if history else None, answer))
    if stream.failure:
        raise StorageFailed(stream.failure.message, f"mino history show --turn {turn_id}" if history else "")
    turn.refuse_incomplete(answer)
    if conversation and terminal.is_terminal(terminal.STDERR):
        tell_size(conversation, settings.warn_turns, "mino session save NAME && mino session new")


def dry_run(
    home: Home | None, settings: Settings, words: Sequence[str], environ: Mapping[str, str], *, history: bool
) -> None:
    """Print the request body that `ask` would send; sends nothing, writes nothing, needs no key."""
    question = read_prompt(words)
    instructions = read_instructions(home, settings)
    context: Sequence[ContextTurn] = []
    if home and history:
        reading = read_session(home, settings.context, completed=True)
        if reading:
            refuse_invalid(reading.path, reading.report)
            context = reading.turns
            if reading.report.in_use:
                tell_in_use()
    request = Request(name_model(settings, environ), instructions, context, question)
    terminal.show_json(request.body(first_step(settings)))


def write_answer(turn_id: str | None, answer: Answer) -> str:
    """`answer` as one line of JSON by `schemas/answer.v1.schema.json`."""
    return terminal.write_json(
        {
            "turn_id": turn_id,
            "status": answer.status,
            "text": answer.text,
            "refusal": answer.refusal,
            "model": answer.model,
            "response_id": answer.response_id,
            "usage": answer.usage,
            "output": answer.output,
        }
    )


def read_prompt(words: Sequence[str]) -> str:
    """The question: the words; where one is `-`, or there is none, standard input too.

    With words alone standard input is not touched: in `while read` the loop's lines are there, under a supervisor a
    pipe that never ends. Raises UsageMistake for no question, InvalidData where it is not text.
    """
    spoken = b" ".join(os.fsencode(word) for word in words if word != "-")
    prompt = spoken
    if not words or "-" in words:
        if not words and terminal.is_terminal(STDIN):
            raise UsageMistake("no question was given", "mino ask 'QUESTION'")
        read = read_stdin()
        prompt = b"\n\n".join(filter(None, (spoken, read)))
    text = to_text(prompt)
    if not text.strip():
        raise UsageMistake("the question is empty", "mino ask 'QUESTION'")
    return text


def read_stdin() -> bytes:
    """All of standard input without its trailing newlines. Raises StorageFailed where it cannot be read."""
    pieces = [b"-"]
    while pieces[-1]:
        try:
            pieces.append(os.read(STDIN, 1 << 20))
        except BlockingIOError:
            # Another program made this pipe non-blocking; `sys.stdin` would take what is there for the whole of it.
            select.select([STDIN], [], [])
        except OSError as error:
            raise StorageFailed(f"cannot read standard input: {error.strerror}") from None
    data = b"".join(pieces[1:])
    end = len(data)
    while data[end - 1 : end] == b"\n":  # an index, for a copy at each step would take quadratic time
        end -= 2 if data[end - 2 : end - 1] == b"\r" else 1
    return data[:end]
