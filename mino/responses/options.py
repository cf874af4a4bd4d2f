"""`-o KEY=VALUE`: further fields of the request, merged over those of a service and of config.toml. No I/O."""

from collections.abc import Iterable, Mapping
from typing import Any

from mino.errors import MinoError, Misconfigured, UsageMistake
from mino.responses.values import NotJson, check_value, parse_strictly
from mino.text import one_line
from mino.values import merge

# Fields that Mino makes itself or never sends, and what to use in their place.
_PROTECTED = {
    "input": "the question is the words of the command; -a FILE attaches a file",
    "instructions": "-s TEXT or --instructions FILE gives instructions",
    "model": "-m NAME names the model",
    "stream": "--no-stream prints the answer at its end",
    "store": "no server may keep the conversation; it is in the home directory of Mino",
    "previous_response_id": "--session NAME continues a conversation",
    "conversation": "--session NAME continues a conversation",
}
_LEVELS = 100  # of nesting; no server takes as many
_EXAMPLE = "-o temperature=0.2"


def read_options(words: Iterable[str]) -> dict[str, Any]:
    """The fields that `words` set, each of them `KEY=VALUE`: VALUE is JSON, or else text.

    A dot in KEY goes into an object; a later word is merged over the earlier ones. Null stays, because it takes a field
    away from weaker sources. Raises UsageMistake.
    """
    fields: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        quoted = f"-o '{one_line(word, 60)}'"
        names = key.split(".")
        if not equals or not all(names) or not key.isprintable() or len(names) > _LEVELS:
            raise UsageMistake(f"{quoted} is not KEY=VALUE", _EXAMPLE)
        try:
            value = _parse(text)
        except ValueError as flaw:
            raise UsageMistake(f"{quoted} cannot be sent: {flaw}", _EXAMPLE) from None
        for name in reversed(names[1:]):
            value = {name: value}
        fields = merge(fields, {names[0]: value})
    _refuse_protected(fields, "-o", UsageMistake)
    return fields


def check_options(fields: Mapping[str, Any], where: str) -> None:
    """Raise Misconfigured for fields of config.toml (`where` names the place) that no request may have."""
    _refuse_protected(fields, where, Misconfigured)


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`fields` without those that are null, in objects too: that is how a field is taken away.

    Arrays stay as they are: a null in a JSON Schema of a tool is a value.
    """
    kept = {name: without_nulls(value) if isinstance(value, dict) else value for name, value in fields.items()}
    return {name: value for name, value in kept.items() if value is not None}


def _refuse_protected(fields: Mapping[str, Any], where: str, mistake: type[MinoError]) -> None:
    for name, instead in _PROTECTED.items():
        if name in fields:
            raise mistake(f"{where} cannot set '{name}'", instead)


def _parse(text: str) -> Any:
    """`text` as JSON, or itself. Raises ValueError for what no request can hold."""
    try:
        return parse_strictly(text, _LEVELS)
    except NotJson:
        check_value(text)
        return text
