"""`mino ask`: one question, one answer, one exit status."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from mino import turn
from mino.attachments import STANDARD_INPUT, read_attachments
from mino.commands.view import AskView, Wanted
from mino.context import tell_context, tell_size
from mino.disk import read_text_file
from mino.errors import UsageMistake
from mino.home import Home
from mino.journal.findings import refuse_invalid
from mino.model import first_step, name_model, open_model, read_instructions, request_options
from mino.responses.options import read_options
from mino.responses.request import Form, Request, context_items, newest
from mino.sessions.conversation import open_conversation
from mino.sessions.reading import IN_USE, read_session
from mino.settings import Settings
from mino.terminal import output
from mino.terminal.prompt import read_prompt

if TYPE_CHECKING:
    from mino.responses.fit import AnswerSchema

WAYS_OUT = "mino history compact sums up older turns; --context 64kB sends only the newest ones"


class Asked(NamedTuple):
    """What the command line says of one question: its words, and what is sent with it and wanted of the answer."""

    words: Sequence[str]
    options: Sequence[str] = ()
    attach: Sequence[str] = ()
    schema: str | None = None
    extract: bool = False
    as_json: bool = False
    history: bool = True


def ask(home: Home | None, session: str | None, settings: Settings, asked: Asked, environ: Mapping[str, str]) -> None:
    """Ask the question and show the answer; without `history` neither read nor write any.

    Raises a MinoError with the exit status of the failure (mino(1), EXIT STATUS).
    """
    request, schema = _read(home, settings, asked)
    wanted = Wanted(not settings.stream, asked.as_json, asked.extract, settings.usage, schema, asked.schema or "")
    with open_model(settings, environ) as model:
        limit = settings.context
        opened = (
            open_conversation(home, session, settings.wait, output.notice, limit.turns)
            if home and asked.history
            else nullcontext(None)
        )
        with opened as conversation:
            context = newest(conversation.context, limit.size) if conversation else []
            request = request._replace(model=model.name, context=context, send_less=_send_less(len(context)))
            stream = output.AnswerStream(waiting=model.waiting)
            view = AskView(stream, wanted, conversation.place.name if conversation else None)
            turn.run(conversation, model.client, request, view)
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


def _read(home: Home | None, settings: Settings, asked: Asked) -> "tuple[Request, AnswerSchema | None]":
    """The request without its context, and the schema that the answer must fit."""
    options = read_options(asked.options)
    if asked.schema is not None and isinstance(text := options.get("text"), dict) and "format" in text:
        raise UsageMistake("--schema sets 'text.format', and so does -o: give one of them")
    if asked.extract and asked.as_json:
        raise UsageMistake("--json prints the whole answer, and -x a part of it: give one of them")
    if STANDARD_INPUT in asked.attach and (STANDARD_INPUT in asked.words or not asked.words):
        raise UsageMistake("-a - attaches standard input, which is the question already", "mino ask -a - 'QUESTION'")
    question = read_prompt(asked.words, attaches_input=STANDARD_INPUT in asked.attach)
    instructions = read_instructions(home, settings)
    schema = None
    if asked.schema is not None:
        from mino.responses.fit import read_schema

        schema = read_schema(read_text_file(asked.schema), asked.schema)
    files = read_attachments(asked.attach)
    request = Request(
        name_model(settings),
        instructions,
        [],
        question,
        options=request_options(settings, options),
        text_format=schema.text_format if schema else None,
        files=files,
    )
    return request, schema


def dry_run(home: Home | None, session: str | None, settings: Settings, asked: Asked) -> None:
    """Print the request body that `ask` would send; it sends nothing, writes nothing, and needs no key."""
    request, _ = _read(home, settings, asked)
    limit, reading = settings.context, None
    if home and asked.history:
        reading = read_session(home, session, output.notice, limit.turns, completed=True)
    if reading:
        refuse_invalid(reading.path, reading.report)
        if reading.report.in_progress:
            output.notice(IN_USE)
    context, step = newest(reading.turns if reading else (), limit.size), first_step(settings)
    output.show_json(request._replace(context=context).body(Form(step)))
    tell_context(len(context), context_items(context, step), reading.report.turns if reading else {})
