"""JSON values as servers send them → values that a record can hold (mino-record(5), Limits). No I/O.

orjson reads nearly everything. It refuses a lone surrogate escape, which models do send, and turns an integer over 64
bits into a float; the functions here are for those cases.
"""

import json
import math
import re
from typing import Any

from mino.text import json_flaw, whole_characters

_LONG_INTEGER = re.compile(rb"\d{19}")
_DIGITS = 4000  # of an integer
_PARSED = 400  # levels, far fewer than any parser takes, and more than an item can have
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[][{}]', re.DOTALL)  # with the strings, which may hold brackets
_LEVELS = 198  # of an item: a record has 200, and the item is in its `output` array


def read_json(data: bytes) -> Any:
    """`data` as strict JSON, or None if it is not JSON. Bytes that are not UTF-8 become U+FFFD, as in WHATWG's decoder.

    A number that a record cannot hold becomes null, and so does what is nested too deeply for the parser: no item that
    holds it can be kept, but the event around it can still be read.
    """
    text = data.decode("utf-8", "replace")
    try:
        return _parse(text)
    except RecursionError:
        try:
            return _parse(_without_depths(text))
        except (ValueError, RecursionError):
            return None
    except ValueError:
        return None


class NotJson(ValueError):
    """What cannot be JSON, with the place."""


def parse_strictly(text: str, levels: int = _PARSED) -> Any:
    """`text` as JSON by RFC 8259, nothing mended. Raises NotJson, or ValueError for JSON that no request can hold.

    That is JSON with a key twice in one object, half of a character, a number that is not finite, an integer of more
    than 4,000 digits, or more `levels` of nesting.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            flaws.append("found a key twice in one object")
        return value

    def integer(digits: str) -> int:
        if (number := _integer(digits)) is None:
            flaws.append(f"found an integer of more than {_DIGITS} digits")
        return number or 0

    flaws: list[str] = []
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_int=integer, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON: {json_flaw(error)} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError(f"found more than {levels} levels of nesting") from None
    if flaws:
        raise ValueError(flaws[0])
    check_value(value, levels)
    return value


def check_value(value: Any, levels: int = _PARSED) -> None:
    """Raise ValueError if `value` cannot be written as JSON in UTF-8, or is nested deeper than `levels`."""
    if isinstance(value, dict | list):
        if not levels:
            raise ValueError("found too many levels of nesting")
        for inner in value.values() if isinstance(value, dict) else value:
            check_value(inner, levels - 1)
        if isinstance(value, dict):
            for key in value:
                check_value(key, levels)
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("found half of a character") from None
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("found a number that is not finite")
    elif value is not None and not isinstance(value, bool | int):
        raise ValueError(f"found a {type(value).__name__}, which JSON does not have")


def exact(value: dict[str, Any], data: bytes) -> dict[str, Any]:
    """`value`, which orjson read from `data`, with the value of every number kept."""
    if _LONG_INTEGER.search(data):
        again = read_json(data)
        return again if isinstance(again, dict) else value
    return value


def clean(value: Any, levels: int = _LEVELS) -> Any:
    """A copy of `value` without lone surrogates; None if it is nested deeper than `levels`."""
    try:
        return _clean(value, levels)
    except ValueError:
        return None


def join_halves(text: str) -> tuple[str, str]:
    """`text` with surrogate pairs as characters and lone halves as U+FFFD, and a high half at its end separately."""
    held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return whole_characters(text[: len(text) - len(held)]), held


def _clean(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict | list) and not levels:
        raise ValueError
    if isinstance(value, dict):
        return {whole_characters(key): _clean(inner, levels - 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_clean(inner, levels - 1) for inner in value]
    return value


def _parse(text: str) -> Any:
    return json.loads(text, parse_int=_integer, parse_float=_double, parse_constant=_refuse)


def _without_depths(text: str) -> str:
    """`text` with null in place of each value deeper than `_PARSED` levels; text that is not JSON stays that."""
    kept: list[str] = []
    closing: list[str] = []  # the brackets that are open, each as the one that closes it
    begin = 0
    for token in _BRACKETS.finditer(text):
        bracket = token[0]
        if bracket in "[{":
            if len(closing) == _PARSED:
                kept += text[begin : token.start()], "null"
            closing.append("]" if bracket == "[" else "}")
        elif bracket in "]}":
            if not closing or closing.pop() != bracket:
                return ""
            if len(closing) == _PARSED:
                begin = token.end()
    return "" if closing else "".join([*kept, text[begin:]])


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits.removeprefix("-")) <= _DIGITS else None


def _double(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _refuse(name: str) -> None:
    raise NotJson(f"{name} is not JSON")
