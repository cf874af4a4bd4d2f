"""`mino ask`: one question, one answer, one exit status."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from mino import terminal, turn
from mino.conversation import open_conversation, read_session
from mino.errors import AnswerIncomplete, InvalidData, StorageFailed, UsageMistake
from mino.home import Home, read_soul
from mino.journal.recovery import refuse_invalid
from mino.responses.answer import Answer
from mino.responses.client import Client, Server
from mino.responses.request import AS_RECEIVED, MESSAGES_ONLY, ContextTurn, Request
from mino.settings import DEFAULT_BASE_URL, DEFAULT_MODEL, Settings, find_key


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
    with open_server(settings, environ) as (server, model):
        opened = open_conversation(home, settings.wait, settings.context) if home and history else nullcontext(None)
        with opened as conversation:
            context = list(conversation.context) if conversation else []
            request = Request(model, instructions, context, question)
            step = MESSAGES_ONLY if settings.replay == "text" else AS_RECEIVED
            client = Client(server, step=step, watch=terminal.STDOUT)
            stream = terminal.AnswerStream()
            try:
                turn_id, answer = turn.run(conversation, client, request, None if as_json else stream.show)
            finally:
                stream.end()
        if as_json:
            stream.show(write_answer(turn_id if history else None, answer))
    if stream.failure:
        raise StorageFailed(stream.failure.message, f"mino history show --turn {turn_id}" if history else "")
    if answer.status == "incomplete":
        raise AnswerIncomplete(f"the service cut the answer short: {answer.reason or 'it gave no reason'}")


def dry_run(
    home: Home | None, settings: Settings, words: Sequence[str], environ: Mapping[str, str], *, history: bool
) -> None:
    """Print the request body that `ask` would send; sends nothing, writes nothing, needs no key."""
    question = read_prompt(words)
    instructions = read_instructions(home, settings)
    context: Sequence[ContextTurn] = []
    if home and history:
        context, report = read_session(home, settings.context, completed=True)
        if report:
            refuse_invalid("the session", report)
    model = settings.model or DEFAULT_MODEL
    if settings.local:
        from mino.responses.local import model_name

        model = model_name(environ.get("MINO_LOCAL_MODEL"))
    step = MESSAGES_ONLY if settings.replay == "text" else AS_RECEIVED
    terminal.show_json(Request(model, instructions, context, question).body(step))


@contextmanager
def open_server(settings: Settings, environ: Mapping[str, str]) -> Iterator[tuple[Server, str]]:
    """The server to ask, and the model to ask it for: the embedded engine while this lasts, or one on the network."""
    if settings.local:
        from mino.responses import local

        model_file = environ.get("MINO_LOCAL_MODEL") or None
        with local.serve(model_file) as base_url:
            yield Server(base_url, None, "", settings.timeout, settings.retries), local.model_name(model_file)
    else:
        key, source = find_key(settings, environ)
        base_url = settings.base_url or DEFAULT_BASE_URL
        yield Server(base_url, key, source, settings.timeout, settings.retries), settings.model or DEFAULT_MODEL


def read_instructions(home: Home | None, settings: Settings) -> str | None:
    """The instructions for the model: the file that was named, else SOUL.md. Raises Misconfigured."""
    if settings.instructions:
        return read_soul(settings.instructions, required=True)
    return read_soul(home.soul) if home else None


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
        if not words and terminal.is_terminal(0):
            raise UsageMistake("no question was given", "mino ask 'QUESTION'")
        read = read_stdin()
        prompt = b"\n\n".join(filter(None, (spoken, read)))
    try:
        text = prompt.decode()
    except UnicodeDecodeError as error:
        found = f"{prompt[error.start]:#04x} at byte {error.start}"
        raise InvalidData(f"the prompt is not UTF-8: {found}", "convert it: iconv -f ENCODING -t UTF-8") from None
    if "\0" in text:
        raise InvalidData(f"the prompt has a NUL at byte {prompt.index(0)}", "remove it: tr -d '\\0'")
    if not text.strip():
        raise UsageMistake("the question is empty", "mino ask 'QUESTION'")
    return text


def read_stdin() -> bytes:
    """All of standard input without its trailing newlines. Raises StorageFailed where it cannot be read."""
    try:
        data = sys.stdin.buffer.read() if sys.stdin else b""
    except OSError as error:
        raise StorageFailed(f"cannot read standard input: {error.strerror}") from None
    end = len(data)
    while data[end - 1 : end] == b"\n":  # an index, for a copy at each step would take quadratic time
        end -= 2 if data[end - 2 : end - 1] == b"\r" else 1
    return data[:end]
