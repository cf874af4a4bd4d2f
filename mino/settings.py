"""The sources of the settings: flag > environment > config.toml > default (mino(1), CONFIGURATION).

A stronger choice of a server ends what a weaker source said of it. A bad value is reported with its source: a flag as a
usage mistake, everything else as a bad configuration.
"""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from mino.disk import read_text_file
from mino.errors import MinoError, Misconfigured, NotFound, UsageMistake
from mino.home import Home
from mino.text import BYTE_ORDER_MARK, one_line, shell_word

DEFAULT_MODEL = "gpt-5.5"  # the one place that names it
DEFAULT_BASE_URL = "https://api.openai.com/v1"


class _Refused(Exception):
    """A bad value of a setting; the message says what was expected instead."""


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise _Refused("printable text")
    return value


def _path(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise _Refused("the path of a file")
    return os.path.expanduser(value)


def _switch(value: object) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if isinstance(value, int) and value in (0, 1):  # a bool too
        return bool(value)
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise _Refused("1 or 0, true or false, yes or no")


def _number(value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _Refused(expected)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _Refused(expected) from None
    if not 0 <= number <= 10**9:
        raise _Refused(expected)
    return number


def _seconds(value: object) -> float:
    return _number(value, "a number of seconds, 0 or more")


def _idle_seconds(value: object) -> float:
    seconds = _number(value, "a number of seconds above 0")
    if not seconds:
        raise _Refused("a number of seconds above 0")
    return seconds


def _count(value: object) -> int:
    expected = "a whole number, 0 or more"
    number = _number(value, expected)
    if number != int(number):
        raise _Refused(expected)
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
    except _Refused:
        raise _Refused("all, none, a number of turns, or a size such as 500B, 64kB, 2MB or 1GB") from None


def _replay(value: object) -> str:
    if value not in ("items", "text"):
        raise _Refused('"items" or "text"')
    return str(value)


def _command(value: object) -> str | list[str]:
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return value
    if isinstance(value, str) and value.strip():
        return value
    raise _Refused("a command: text for sh, or a list of words")


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
    "context": Option(_limit),
    "instructions": Option(_path),
    "wait": Option(_seconds),
    "timeout": Option(_idle_seconds),
    "retries": Option(_count),
}
# These are in config.toml alone.
FILE_ONLY: dict[str, Option] = {
    "replay": Option(_replay),
    "warn_turns": Option(_count),
    "api_key_command": Option(_command),
}


class Settings(NamedTuple):
    """The settings of one call; seconds are floats, `base_url` is None for OpenAI's.

    With `local`, `model` is the file of the model, None for the small one.
    """

    model: str | None = None
    base_url: str | None = None
    local: bool = False
    context: Limit = Limit()
    instructions: str | None = None
    wait: float = 0
    timeout: float = 300
    retries: int = 2
    replay: str = "items"
    warn_turns: int = 20
    api_key_command: str | list[str] | None = None


def settle(flags: Mapping[str, object], environ: Mapping[str, str], home: Home | None) -> Settings:
    """The settings of one call; a flag that is None was not given, and an empty variable counts as unset.

    Raises UsageMistake for a bad flag, Misconfigured for a bad variable or a bad config.toml.
    """
    config = read_config(home.config) if home else {}
    settled: dict[str, Any] = {}
    # How strong the source is that each setting comes from: 3 a flag, 2 MINO_…, 1 OPENAI_…, 0 the file or none.
    strength = dict.fromkeys((name.replace("-", "_") for name in OPTIONS), 0)
    for name, option in (OPTIONS | FILE_ONLY).items():
        field = name.replace("-", "_")
        if home and field in config:
            settled[field] = _read(option, config[field], f"{field} in '{home.config}'")
            if option.read is _path:
                settled[field] = os.path.join(home.path, settled[field])
    for name, option in OPTIONS.items():
        field = name.replace("-", "_")
        for variable in reversed(option.variables(name)):
            if environ.get(variable):
                settled[field] = _read(option, environ[variable], variable)
                strength[field] = 1 if variable == option.other_variable else 2
        if flags.get(field) is not None:
            settled[field] = _read(option, flags[field], f"--{name}", UsageMistake)
            strength[field] = 3
    if settled.get("local"):
        if strength["local"] == strength["base_url"] == 3:
            raise UsageMistake("--base-url and --local exclude each other", "leave one of them out")
        settled["local"] = strength["local"] >= strength["base_url"]
    if settled.get("local"):
        settled["model"] = _find_model_file(flags.get("model"), environ)
    return Settings(**settled)


def _find_model_file(flag: object, environ: Mapping[str, str]) -> str | None:
    """The file of the embedded engine's model by `-m`, else MINO_LOCAL_MODEL; None for the small one.

    Other sources name models of servers (an OPENAI_MODEL that was exported once). Raises UsageMistake.
    """
    path = os.path.expanduser(str(flag or environ.get("MINO_LOCAL_MODEL") or ""))
    if flag and not os.path.isfile(path):
        raise UsageMistake(
            f"-m '{one_line(str(flag))}' is no file, and the embedded engine has no models by name",
            "-m FILE.gguf, or name a server with --base-url URL",
        )
    return path or None


def _read(option: Option, value: object, where: str, mistake: type[MinoError] = Misconfigured) -> Any:
    try:
        return option.read(value)
    except _Refused as refused:
        raise mistake(f"bad value{_quote(value)} for {where}: expected {refused}") from None


def _quote(value: object) -> str:
    """` 'VALUE'`, or nothing if a URL may hold a password, or if Python cannot write a number of so many digits."""
    with suppress(ValueError):
        text = str(value)
        if "@" not in text:
            return f" {text[:60]!r}"
    return ""


def read_config(path: str) -> dict[str, Any]:
    """The settings in `path` by their names, with `_` for `-`; none if there is no file.

    Raises Misconfigured if it cannot be read, is not TOML, or has a name that Mino does not know: a misspelt setting
    would otherwise be ignored silently.
    """
    try:
        data = read_text_file(path)
    except NotFound:
        return {}
    except MinoError as failure:
        raise Misconfigured(failure.message, failure.hint) from None
    import tomllib

    try:
        config = tomllib.loads(data.decode().removeprefix(BYTE_ORDER_MARK))
    except UnicodeDecodeError as error:
        raise Misconfigured(f"'{path}' is not UTF-8 at byte {error.start}", f"file {shell_word(path)}") from None
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits is a plain ValueError
        raise Misconfigured(f"'{path}' is not TOML: {str(error)[:200]}", "man mino") from None
    names = {name.replace("-", "_"): name for name in config}
    for field, name in names.items():
        if field not in {known.replace("-", "_") for known in OPTIONS | FILE_ONLY}:
            raise Misconfigured(f"'{path}' has the unknown setting {name[:60]!r}", "man mino")
    return {field: config[name] for field, name in names.items()}
