"""The models that a server has: `GET {base}/models`, in the shape of OpenAI's list."""

from contextlib import closing
from typing import Any

from mino.errors import Reply, ServiceFailed
from mino.responses.exchange import Exchange, IdleTimeout
from mino.responses.failure import http_failure, read_body
from mino.responses.post import ConnectionLost
from mino.responses.server import Server, check_key, endpoint, without_query
from mino.responses.values import read_json
from mino.text import whole_characters
from mino.watch import Watch

_LONGEST, _SECONDS = 16 << 20, 60.0  # of a list


class NoList(ServiceFailed):
    """The server was reached, and has no list of models."""


def list_models(server: Server, watch: int | None = None) -> list[str]:
    """The names of the models of `server`, in its order. Raises NoList, ServiceFailed, AccessRefused, Misconfigured."""
    names = [model.get("id") if isinstance(model, dict) else None for model in _get_list(server, watch)]
    return [whole_characters(name) for name in names if isinstance(name, str) and name]


def find_context(server: Server) -> int | None:
    """How many tokens question and answer may have together, as llama.cpp's list says; None if it does not say it."""
    for model in _get_list(server, None):
        meta = model.get("meta") if isinstance(model, dict) else None
        tokens = meta.get("n_ctx") if isinstance(meta, dict) else None
        if isinstance(tokens, int):
            return tokens
    return None


def _get_list(server: Server, watch: int | None) -> list[Any]:
    url, key = endpoint(server.base_url, "models"), check_key(server.key, server.key_source)
    shown = without_query(url)
    with closing(Exchange(url, None, key, server.timeout, Watch(watch))) as exchange:
        try:
            head = exchange.head()
        except ConnectionLost as broke:
            raise _failed(str(broke), broke.hint or "check that the server is running, and --base-url") from None
        except IdleTimeout:
            raise _failed(f"no data from '{shown}' for {server.timeout:g} s", "") from None
        body = exchange.rest(_LONGEST, _SECONDS)
    if head.status in (404, 405, 501):
        raise NoList(f"'{shown}' answered {head.status}: the service has no list of models")
    if not 200 <= head.status < 300:
        failure = http_failure(
            head.status,
            read_body(body),
            url=shown,
            model="",
            key=key,
            key_source=server.key_source,
            request_id=head.headers.get("x-request-id", ""),
        )
        failure.reply = Reply(head.status)
        raise failure
    listed = read_json(body)
    models = listed.get("data") if isinstance(listed, dict) else listed
    if not isinstance(models, list):
        raise NoList(f"'{shown}' answered with something else than a list of models")
    return models


def _failed(message: str, hint: str) -> ServiceFailed:
    failure = ServiceFailed(message, hint)
    failure.reply = Reply()
    return failure
