"""`mino config`: the settings in force, and whether the service works."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mino.config import nearest
from mino.errors import MinoError, NotFound, ServiceFailed
from mino.home import Home
from mino.model import Model, name_model, open_model, request_options
from mino.responses.fit import Misfit, read_schema
from mino.responses.models import NoList, list_models
from mino.responses.request import Request
from mino.responses.server import check_base_url, without_query
from mino.settings import DEFAULT_BASE_URL, Settings
from mino.terminal import output
from mino.text import count, one_line
from mino.values import FILE_ONLY, OPTIONS, Limit

_SECRET = re.compile("key|token|secret|password|auth", re.IGNORECASE)
_SCHEMA = b'{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}'
_QUESTION = "Say hello."  # without the schema the answer is no JSON
_FEWEST_TOKENS = 16  # that OpenAI takes as max_output_tokens


def show(home: Home, settings: Settings, environ: Mapping[str, str]) -> None:
    """Print each setting in force and where it comes from; of a key only the latter. Raises Misconfigured."""
    request_options(settings)  # raises for options that no request may have
    for name, value in _values(home, settings, environ):
        source = settings.sources.get(name.partition(".")[0], "default")
        output.show(f"{name} = {value}  ({source})\n")


def _values(home: Home, settings: Settings, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for option in (*OPTIONS, *FILE_ONLY):
        name = option.replace("-", "_")
        value = getattr(settings, name)
        if name == "model":
            value = name_model(settings)
        elif name == "base_url":
            value = None if settings.local else _shown_url(settings.base_url or DEFAULT_BASE_URL)
        elif name == "instructions" and value is None and settings.system is None and os.path.exists(home.soul):
            value = home.soul
        elif name == "options":
            yield from _fields("options", request_options(settings))
            continue
        elif name == "api_key_command":
            if settings.api_key_env and not settings.local:
                is_set = "set" if environ.get(settings.api_key_env, "").strip() else "not set"
                yield "api_key_env", f"{settings.api_key_env}, which is {is_set}"
            if value and not settings.local:  # it may hold the key itself
                yield name, "a command"
            continue
        if value is not None:
            yield name, _shown(value)


def _shown_url(url: str) -> str:
    base = without_query(check_base_url(url))
    return base + "?…" * (base != url.removesuffix("/"))


def _shown(value: Any) -> str:
    if isinstance(value, Limit):
        limits = (None if value.turns is None else str(value.turns), None if value.size is None else f"{value.size}B")
        return ", ".join(filter(None, limits)) or "all"
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _fields(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The fields of an object with their whole names; a value that may be a secret is not shown."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _fields(f"{name}.{one_line(key, 60)}", inner)
    elif name != "options":
        hidden = isinstance(value, list | dict) or (isinstance(value, str) and _SECRET.search(name))
        yield name, "…" if hidden and value else _shown(value)


def models(settings: Settings, environ: Mapping[str, str]) -> None:
    """Print the names of the service's models. Raises ServiceFailed if it has no list."""
    with open_model(settings, environ) as model:
        output.show_lines(one_line(name, 1000) for name in list_models(model.client.server, output.STDOUT))


def check(settings: Settings, environ: Mapping[str, str]) -> None:
    """Ask the service for its models, and for the smallest answer; print what works.

    Raises the failure with which the service cannot be used: NotFound for a model that is not there, AccessRefused,
    ServiceFailed.
    """
    schema = read_schema(_SCHEMA, "the schema of the check")
    with open_model(settings._replace(retries=0), environ) as model:
        output.show(f"service: {settings.service or 'no name'}, {model.place}\n")
        listed = _check_list(model)
        source = model.client.server.key_source
        options = dict(model.options) | {"max_output_tokens": _FEWEST_TOKENS}
        request = Request(model.name, None, [], _QUESTION, options=options, text_format=schema.text_format)
        model.waiting.begin()
        try:
            answer = model.client.ask(request, None)
        except MinoError as failure:
            if isinstance(failure, ServiceFailed) and listed is not None and model.name not in listed:
                output.show(f"model: '{one_line(model.name)}' is not there\n")
                raise NotFound(failure.message, nearest(model.name, listed) or "mino config models") from None
            raise
        finally:
            model.waiting.end()
        output.show(f"key: {f'accepted, from {source}' if model.client.server.key else 'none was sent'}\n")
        unlisted = listed is not None and model.name not in listed
        output.show(f"model: '{one_line(model.name)}' answers{', though it is not in the list' if unlisted else ''}\n")
        output.show(f"streaming: {'yes' if model.client.has_streamed else 'no, the answer comes at its end'}\n")
        verdict = "yes"
        if not model.client.takes_format:
            verdict = "refused; Mino sends the schema in the instructions"
        elif answer.status == "incomplete" and (not answer.text.strip() or answer.text.lstrip().startswith("{")):
            verdict = f"taken; the answer of {count(_FEWEST_TOKENS, 'token')} was too short to see whether it fits"
        else:
            try:
                schema.check(answer.text)
            except Misfit:
                verdict = "ignored; Mino checks the answer in any case"
        output.show(f"schema: {verdict}\n")


def _check_list(model: Model) -> list[str] | None:
    """The names of the models, None if there is no list; prints what was found."""
    try:
        listed = list_models(model.client.server, output.STDOUT)
    except NoList as none:
        output.show(f"reachable: yes\nmodels: {none.message}\n")
        return None
    output.show(f"reachable: yes\nmodels: {len(listed)} in the list\n")
    return listed
