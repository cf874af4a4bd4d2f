"""The sources of the settings: flag > environment > config.toml > default (mino(1), CONFIGURATION).

A service stands where it was chosen: one that a flag or a variable chose brings its address, model, key and options,
and only flags beat these; one that config.toml chose stands below the variables. A stronger choice of a server ends
what a weaker source said of it. A bad value is reported with its source: a flag as a usage mistake, everything else as
a bad configuration.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from mino.config import Config, nearest, quote_value, read_config
from mino.errors import MinoError, Misconfigured, NotFound, UsageMistake
from mino.home import Home
from mino.text import one_line
from mino.values import OPTIONS, Limit, Option, Refused, merge

DEFAULT_MODEL = "gpt-5.5"  # the one place that names it
DEFAULT_BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"

# How strong a source is. A service that a flag or a variable chose is weaker than flags alone.
_FILE, _SERVICE_OF_FILE, _OPENAI, _MINO, _SERVICE, _FLAG = range(1, 7)


class Settings(NamedTuple):
    """The settings of one call; seconds are floats, `base_url` is None for OpenAI's.

    With `local`, `model` is the file of the model, None for the small one. `service` is the one in use, None if there
    is none. The key is in the variable `api_key_env`, or `api_key_command` prints it; None: there is none of the kind.
    `options` are further fields of the request. `sources` says where each value comes from, if it is no default.
    """

    model: str | None = None
    base_url: str | None = None
    local: bool = False
    service: str | None = None
    context: Limit = Limit()
    system: str | None = None
    instructions: str | None = None
    stream: bool = True
    usage: bool = False
    wait: float = 0
    timeout: float = 300
    retries: int = 2
    replay: str = "items"
    warn_turns: int = 20
    api_key_env: str | None = KEY_VARIABLE
    api_key_command: str | list[str] | None = None
    local_context: int = 8192
    options: Mapping[str, Any] = {}
    sources: Mapping[str, str] = {}


class _Chosen:
    """The values that were chosen so far, each with its source and its strength."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.strength: dict[str, int] = {}

    def set(self, field: str, value: Any, source: str, strength: int) -> None:
        """Take `value`, if nothing stronger was set."""
        if strength >= self.strength.get(field, 0):
            self.values[field], self.sources[field], self.strength[field] = value, source, strength

    def drop(self, field: str) -> None:
        """Let the default of `field` hold."""
        for each in (self.values, self.sources, self.strength):
            each.pop(field, None)

    def is_stronger(self, field: str, *others: str) -> bool:
        """Whether `field` was set, and by no weaker source than any of `others`."""
        own = self.strength.get(field, 0)
        return bool(own) and all(own >= self.strength.get(other, 0) for other in others)


def settle(flags: Mapping[str, object], environ: Mapping[str, str], home: Home | None) -> Settings:
    """The settings of one call; a flag that is None was not given, and an empty variable counts as unset.

    Raises UsageMistake for a bad flag, Misconfigured for a bad variable or a bad config.toml, NotFound for a service
    that is not in it.
    """
    config = read_config(home.config) if home else Config()
    chosen = _Chosen()
    for field, value in config.settings.items():
        chosen.set(field, value, "config.toml", _FILE)
    for name, option in OPTIONS.items():
        field = name.replace("-", "_")
        for variable in reversed(option.variables(name)):
            if environ.get(variable):
                strength = _OPENAI if variable == option.other_variable else _MINO
                chosen.set(field, _read(option, environ[variable], variable), variable, strength)
        if flags.get(field) is not None:
            flag = f"--{'no-' * (flags[field] is False)}{name}"
            chosen.set(field, _read(option, flags[field], flag, UsageMistake), flag, _FLAG)
    _choose_instructions(chosen)
    _choose_server(chosen, config, flags, environ)
    return Settings(**chosen.values, sources=chosen.sources)


def _choose_instructions(chosen: _Chosen) -> None:
    """`system` and `instructions` are two ways to say one thing: the stronger one holds."""
    if "system" not in chosen.values or "instructions" not in chosen.values:
        return
    if chosen.strength["system"] == chosen.strength["instructions"]:
        mistake = UsageMistake if chosen.strength["system"] == _FLAG else Misconfigured
        one, other = chosen.sources["system"], chosen.sources["instructions"]
        both = f"{one} and {other} exclude each other" if one != other else f"{one} has system and instructions"
        raise mistake(both, "leave one of them out")
    chosen.drop("instructions" if chosen.is_stronger("system", "instructions") else "system")


def _choose_server(chosen: _Chosen, config: Config, flags: Mapping[str, object], environ: Mapping[str, str]) -> None:
    """The embedded engine, a service, or an address: what the strongest source says."""
    if chosen.values.get("local"):
        for other in ("base_url", "service"):
            if chosen.strength["local"] == chosen.strength.get(other) == _FLAG:
                raise UsageMistake(f"{chosen.sources[other]} and --local exclude each other", "leave one of them out")
        if chosen.is_stronger("local", "base_url", "service"):
            chosen.drop("service")
            chosen.drop("model")
            if model := _find_model_file(flags.get("model"), environ):
                chosen.set("model", model, "--model" if flags.get("model") else "MINO_LOCAL_MODEL", _FLAG)
            return
        chosen.drop("local")
    if "service" in chosen.values:
        _use_service(chosen, config)


def _use_service(chosen: _Chosen, config: Config) -> None:
    """Let the service that was chosen say what no stronger source says."""
    name = chosen.values["service"]
    service = config.services.get(name)
    if service is None:
        raise _no_service(name, config)
    source, strength = f"service '{name}'", _SERVICE_OF_FILE if chosen.strength["service"] == _FILE else _SERVICE
    # Without an address it is OpenAI's, and not one that OPENAI_BASE_URL names: the key would go there.
    chosen.set("base_url", service.get("base_url"), source, strength)
    for field in ("model", "replay"):
        if field in service:
            chosen.set(field, service[field], source, strength)
    if "model" not in service and strength == _SERVICE and chosen.strength.get("model", 0) < strength:
        chosen.drop("model")  # an exported OPENAI_MODEL is no model of this service
    if chosen.sources["base_url"] == source:
        for field in ("api_key_env", "api_key_command"):
            chosen.set(field, service.get(field), source, strength)
    aliases = service.get("models", {})
    if "model" in chosen.values:
        chosen.values["model"] = aliases.get(chosen.values["model"], chosen.values["model"])
    if "options" in service:
        weaker = chosen.values.get("options", {})
        chosen.set("options", merge(weaker, service["options"]), source, strength)


def _no_service(name: str, config: Config) -> NotFound:
    known = ", ".join(f"'{one_line(each)}'" for each in config.services)
    hint = nearest(name, config.services) or (
        f"the services are {known}" if known else "config.toml has no services; man mino says how to write one"
    )
    where = f" in '{config.path}'" if config.path else ": there is no home"
    return NotFound(f"there is no service '{one_line(name)}'{where}", hint)


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
    except Refused as refused:
        raise mistake(f"bad value{quote_value(value)} for {where}: expected {refused}") from None
