"""The model that is asked: its name, a client that asks it, and the instructions that it gets."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from mino.disk import read_text_file
from mino.errors import AccessRefused, Misconfigured, NotFound, StorageFailed
from mino.home import Home
from mino.key import find_key
from mino.responses.client import Client
from mino.responses.models import find_context
from mino.responses.options import check_options
from mino.responses.request import AS_RECEIVED, PLAIN_TEXT
from mino.responses.server import Server, without_query
from mino.settings import DEFAULT_BASE_URL, DEFAULT_MODEL, Settings
from mino.terminal import output
from mino.terminal.waiting import Waiting
from mino.text import shell_word
from mino.values import merge


class Model(NamedTuple):
    """A model by its name, and a client that asks it; `place` says where it runs, for people to read.

    `options` are the further fields of a request, by the settings; `waiting` is shown while the client waits.
    """

    name: str
    place: str
    client: Client
    waiting: Waiting
    options: Mapping[str, Any] = {}


@contextmanager
def open_model(settings: Settings, environ: Mapping[str, str]) -> Iterator[Model]:
    """The model to ask: the embedded engine for the length of the block, or a server. Raises Misconfigured."""
    if settings.local:
        from mino.responses import local

        output.keep_stderr()
        with local.serve(settings.model, settings.local_context) as base_url:
            server = Server(
                base_url,
                None,
                "",
                settings.timeout,
                settings.retries,
                context_tokens=settings.local_context,
                output_tokens=None if settings.model else local.SMALL_OUTPUT_TOKENS,
                has_grammars=True,
            )
            if settings.model or settings.local_context != local.CONTEXT_TOKENS:
                # A model may have been trained for fewer, and the engine rounds.
                server = replace(server, context_tokens=find_context(server))
            yield _model(local.model_name(settings.model), "in this process", server, settings)
    else:
        if not settings.base_url and environ.get("OPENAI_API_BASE"):  # the question would go to OpenAI unseen
            output.notice("OPENAI_API_BASE is set, which Mino does not read; it reads OPENAI_BASE_URL")
            output.hint('export OPENAI_BASE_URL="$OPENAI_API_BASE"')
        key, source = find_key(settings, environ)
        base_url = settings.base_url or DEFAULT_BASE_URL
        server = Server(base_url, key, source, settings.timeout, settings.retries)
        yield _model(settings.model or DEFAULT_MODEL, f"at {without_query(base_url)}", server, settings)


def _model(name: str, place: str, server: Server, settings: Settings) -> Model:
    waiting = Waiting(f"{name} {place}")
    # A log need not show a further attempt, but a person at a terminal wonders why nothing happens.
    tell_attempt = output.notice if output.is_terminal(output.STDERR) else None
    step = first_step(settings)
    client = Client(server, output.notice, tell_attempt, step=step, watch=output.STDOUT, tick=waiting.tick)
    return Model(name, place, client, waiting, request_options(settings))


def first_step(settings: Settings) -> int:
    """The step of the replay ladder at which the first request begins."""
    return PLAIN_TEXT if settings.replay == "text" else AS_RECEIVED


def name_model(settings: Settings) -> str:
    """The name of the model that `open_model` would ask, without opening anything."""
    if settings.local:
        from mino.responses.local import model_name

        return model_name(settings.model)
    return settings.model or DEFAULT_MODEL


def request_options(settings: Settings, more: Mapping[str, Any] = {}) -> dict[str, Any]:
    """The further fields of a request: those of the settings, and `more` over them. Raises Misconfigured."""
    check_options(settings.options, f"options ({settings.sources.get('options', 'config.toml')})")
    return merge(settings.options, more)


def read_instructions(home: Home | None, settings: Settings) -> str | None:
    """The instructions for the model, read anew: those of the settings, else SOUL.md; None if blank.

    Raises NotFound if the file in the settings is missing, Misconfigured if a file cannot be read: an answer without
    the user's instructions would be wrong.
    """
    if settings.system is not None:
        text: str | None = settings.system
    elif settings.instructions:
        text = _read_text(settings.instructions)
        if text is None:
            raise NotFound(f"'{settings.instructions}' does not exist")
    else:
        text = _read_text(home.soul) if home else None
    return text if text and text.strip() else None


def _read_text(path: str) -> str | None:
    """The text in `path` without a byte order mark; None if there is no file."""
    try:
        data = read_text_file(path)
    except NotFound:
        return None
    except (AccessRefused, StorageFailed) as failure:
        raise Misconfigured(failure.message, failure.hint) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misconfigured(f"'{path}' is not UTF-8 at byte {error.start}", f"file {shell_word(path)}") from None
