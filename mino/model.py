"""The model that `ask` and `chat` talk to: where it is, how it is reached, and the instructions it gets."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from mino import terminal
from mino.home import Home, read_soul
from mino.responses.client import Client, Server
from mino.responses.request import AS_RECEIVED, MESSAGES_ONLY
from mino.settings import DEFAULT_BASE_URL, DEFAULT_MODEL, Settings, find_key


class Model(NamedTuple):
    """A model by its name, and a client that asks it; `place` says for a person where it runs."""

    name: str
    place: str
    client: Client


@contextmanager
def open_model(settings: Settings, environ: Mapping[str, str]) -> Iterator[Model]:
    """The model to ask: the embedded engine while this lasts, or one on the network. Raises Misconfigured."""
    if settings.local:
        from mino.responses import local

        model_file = environ.get("MINO_LOCAL_MODEL") or None
        with local.serve(model_file) as base_url:
            server = Server(base_url, None, "", settings.timeout, settings.retries, local.CONTEXT_TOKENS)
            yield Model(local.model_name(model_file), "in this process", _client(server, settings))
    else:
        key, source = find_key(settings, environ)
        base_url = settings.base_url or DEFAULT_BASE_URL
        server = Server(base_url, key, source, settings.timeout, settings.retries)
        yield Model(settings.model or DEFAULT_MODEL, f"at {base_url}", _client(server, settings))


def _client(server: Server, settings: Settings) -> Client:
    return Client(server, step=first_step(settings), watch=terminal.STDOUT)


def first_step(settings: Settings) -> int:
    """Where on the replay ladder the first request begins."""
    return MESSAGES_ONLY if settings.replay == "text" else AS_RECEIVED


def name_model(settings: Settings, environ: Mapping[str, str]) -> str:
    """The name of the model that `open_model` would ask, without opening anything."""
    if settings.local:
        from mino.responses.local import model_name

        return model_name(environ.get("MINO_LOCAL_MODEL") or None)
    return settings.model or DEFAULT_MODEL


def read_instructions(home: Home | None, settings: Settings) -> str | None:
    """The instructions for the model, read anew: the file that was named, else SOUL.md. Raises Misconfigured."""
    if settings.instructions:
        return read_soul(settings.instructions, required=True)
    return read_soul(home.soul) if home else None
