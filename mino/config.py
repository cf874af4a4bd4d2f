"""config.toml: the settings and services in it, and the line of what is wrong there (mino(1), CONFIGURATION)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from mino.disk import read_text_file
from mino.errors import MinoError, Misconfigured, NotFound
from mino.text import BYTE_ORDER_MARK, one_line, shell_word
from mino.values import FILE_ONLY, OF_SERVICE, OPTIONS, Option, Refused, path

MANUAL = "man mino"


class Config(NamedTuple):
    """The settings in the file `path` by their names with `_`, their values read; and the services by name."""

    path: str = ""
    settings: Mapping[str, Any] = {}
    services: Mapping[str, Mapping[str, Any]] = {}


def read_config(file: str) -> Config:
    """The settings and services in `file`; none if there is no file.

    Raises Misconfigured if it cannot be read, is not TOML, has a value that a setting cannot have, or a name that Mino
    does not know: a misspelt setting would otherwise be ignored silently.
    """
    try:
        data = read_text_file(file)
    except NotFound:
        return Config(file)
    except MinoError as failure:
        raise Misconfigured(failure.message, failure.hint) from None
    try:
        text = data.decode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise Misconfigured(f"'{file}' is not UTF-8 at byte {error.start}", f"file {shell_word(file)}") from None
    return _File(file, text).read()


class _File(NamedTuple):
    path: str
    text: str

    def read(self) -> Config:
        import tomllib

        try:
            tables = tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:  # an integer of thousands of digits is a plain ValueError
            said, _, place = str(error)[:200].partition(" (at line ")
            line, _, column = place.partition(", ")
            where = f"'{self.path}'{f' line {line}' if line else ''} is not TOML"
            raise Misconfigured(f"{where}: {said}{f' ({column}' if column else ''}", MANUAL) from None
        services = tables.pop("services", {})
        known = {name.replace("-", "_"): option for name, option in (OPTIONS | FILE_ONLY).items()}
        settings = self._read_table(tables, known, (), "services")
        if not isinstance(services, dict):
            self._refuse(("services",), "services", services, "tables [services.NAME]")
        read = {name: self._read_service(name, table) for name, table in services.items()}
        return Config(self.path, settings, read)

    def _read_service(self, name: str, table: Any) -> dict[str, Any]:
        keys = ("services", name)
        if not isinstance(table, dict):
            self._refuse(keys, f"services.{name}", table, "a table")
        service = self._read_table(table, OF_SERVICE, keys)
        if "api_key_env" in service and "api_key_command" in service:
            where = self._place((*keys, "api_key_command"))
            raise Misconfigured(
                f"{where}: [services.{name}] has api_key_env and api_key_command: give one of them", MANUAL
            )
        return service

    def _read_table(
        self, table: Mapping[str, Any], known: Mapping[str, Option], keys: tuple[str, ...], *others: str
    ) -> dict[str, Any]:
        """The values of `table`, which is at `keys`; `known` are the names that it may have, beside `others`."""
        values: dict[str, Any] = {}
        for name, value in table.items():
            place, field = (*keys, name), name.replace("-", "_")
            option = known.get(field)
            if option is None:
                of = f" in [{'.'.join(keys)}]" if keys else ""
                message = f"{self._place(place)}: unknown setting '{one_line(name, 60)}'{of}"
                raise Misconfigured(message, nearest(field, [*known, *others]) or MANUAL)
            if field in values:
                raise Misconfigured(f"{self._place(place)}: the setting '{field}' is there twice, with - and _", MANUAL)
            try:
                values[field] = option.read(value)
            except Refused as refused:
                self._refuse(place, name, value, str(refused))
            if option.read is path:
                values[field] = _beside(self.path, values[field])
        return values

    def _refuse(self, keys: tuple[str, ...], name: str, value: object, expected: str) -> NoReturn:
        raise Misconfigured(
            f"{self._place(keys)}: bad value{quote_value(value)} for {name}: expected {expected}", MANUAL
        )

    def _place(self, keys: tuple[str, ...]) -> str:
        line = find_line(self.text, keys)
        return f"'{self.path}' line {line}" if line else f"'{self.path}'"


def _beside(file: str, value: str) -> str:
    import os

    return os.path.join(os.path.dirname(file), value)


def find_line(text: str, keys: tuple[str, ...]) -> int | None:
    """The line of the TOML document `text`, from 1, on which the value at `keys` begins.

    It is found by parsing ever longer beginnings of the document, because TOML has many spellings of one key.
    """
    import tomllib

    lines = text.split("\n")
    before = 0  # lines of the longest beginning that is TOML and does not have the value
    for count in range(1, len(lines) + 1):
        try:
            value: Any = tomllib.loads("\n".join(lines[:count]))
        except ValueError:
            continue
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return (
                next(n for n in range(before, count) if lines[n].strip() and not lines[n].lstrip().startswith("#")) + 1
            )
        before = count
    return None


def nearest(name: str, names: Iterable[str]) -> str:
    """`did you mean 'NAME'?` with that of `names` that is like `name`; empty if none is."""
    from difflib import get_close_matches

    found = get_close_matches(name, names, 1)
    return f"did you mean '{one_line(found[0])}'?" if found else ""


def quote_value(value: object) -> str:
    """` 'VALUE'`, or nothing if a URL may hold a password, or if Python cannot write a number of so many digits."""
    try:
        text = str(value)
    except ValueError:
        return ""
    return f" {text[:60]!r}" if "@" not in text else ""
