"""The settings that there are: where each can be set, and what its value may be. No I/O."""

import os
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, NamedTuple


class Refused(Exception):
    """A bad value of a setting; the message says what was expected instead."""


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise Refused("printable text")
    return value


def _instructions(value: object) -> str:
    try:
        if isinstance(value, str) and "\0" not in value and value.encode() is not None:
            return value
    except UnicodeEncodeError:  # bytes of the command line that are not UTF-8
        pass
    raise Refused("text in UTF-8, without NUL")


def path(value: object) -> str:
    """The path of a file; `~` is expanded."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise Refused("the path of a file")
    return os.path.expanduser(value)


def _switch(value: object) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if isinstance(value, int) and value in (0, 1):  # a bool too
        return bool(value)
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise Refused("1 or 0, true or false, yes or no")


def _number(value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Refused(expected)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise Refused(expected) from None
    if not 0 <= number <= 10**9:
        raise Refused(expected)
    return number


def _seconds(value: object) -> float:
    return _number(value, "a number of seconds, 0 or more")


def _idle_seconds(value: object) -> float:
    seconds = _number(value, "a number of seconds above 0")
    if not seconds:
        raise Refused("a number of seconds above 0")
    return seconds


def _count(value: object) -> int:
    expected = "a whole number, 0 or more"
    number = _number(value, expected)
    if number != int(number):
        raise Refused(expected)
    return int(number)


class Limit(NamedTuple):
    """How much of a conversation is sent: the newest `turns`, of these as many as fit into `size` bytes; None: all."""

    turns: int | None = None
    size: int | None = None


_UNITS = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3}
_SIZE = re.compile("([0-9]{1,12})(B|kB|MB|GB)")


def _limit(value: object) -> Limit:
    if value == "all":
        return Limit()
    if value == "none":
        return Limit(0)
    size = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if size:
        return Limit(size=int(size[1]) * _UNITS[size[2]])
    try:
        return Limit(_count(value))
    except Refused:
        raise Refused("all, none, a number of turns, or a size such as 500B, 64kB, 2MB or 1GB") from None


def _replay(value: object) -> str:
    if value not in ("items", "text"):
        raise Refused('"items" or "text"')
    return str(value)


def _command(value: object) -> str | list[str]:
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return value
    if isinstance(value, str) and value.strip():
        return value
    raise Refused("a command: text for sh, or a list of words")


def _fields(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused("a table")
    _check_json(value)
    return value


def _check_json(value: object) -> None:
    """TOML has values that JSON does not have: dates, and numbers that are not finite."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_json(inner)
    elif not isinstance(value, str | int | float) or not isfinite(value if isinstance(value, float) else 0):
        raise Refused("values that JSON has, which are no dates and no infinite numbers")


def _aliases(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(name, str) and name for name in value.values()):
        raise Refused("a table of names of models")
    return value


def _tokens(value: object) -> int:
    expected = "a whole number of tokens, 1 or more"
    number = _number(value, expected)
    if number != int(number) or not number:
        raise Refused(expected)
    return int(number)


def merge(weaker: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of both, those of objects one by one; any other value of `stronger` replaces that of `weaker`."""
    merged = dict(weaker)
    for name, value in stronger.items():
        before = merged.get(name)
        merged[name] = merge(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


class Option(NamedTuple):
    """One setting: the function that reads its value, and a variable that sets it besides its own `MINO_` one."""

    read: Callable[[object], Any]
    other_variable: str = ""

    def variables(self, name: str) -> tuple[str, ...]:
        """The variables that set the option `name`, the strongest first."""
        return tuple(filter(None, ("MINO_" + name.upper().replace("-", "_"), self.other_variable)))


# These have a flag, a variable and a name in config.toml.
OPTIONS: dict[str, Option] = {
    "model": Option(_text, "OPENAI_MODEL"),
    "base-url": Option(_text, "OPENAI_BASE_URL"),
    "local": Option(_switch),
    "service": Option(_text),
    "context": Option(_limit),
    "system": Option(_instructions),
    "instructions": Option(path),
    "stream": Option(_switch),
    "usage": Option(_switch),
    "wait": Option(_seconds),
    "timeout": Option(_idle_seconds),
    "retries": Option(_count),
}
# These are in config.toml alone.
FILE_ONLY: dict[str, Option] = {
    "replay": Option(_replay),
    "warn_turns": Option(_count),
    "api_key_command": Option(_command),
    "local_context": Option(_tokens),
    "options": Option(_fields),
}
# These are in a `[services.NAME]` of config.toml.
OF_SERVICE: dict[str, Option] = {
    "base_url": Option(_text),
    "model": Option(_text),
    "api_key_env": Option(_text),
    "api_key_command": Option(_command),
    "replay": Option(_replay),
    "options": Option(_fields),
    "models": Option(_aliases),
}
