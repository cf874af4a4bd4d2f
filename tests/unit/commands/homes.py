"""Homes whose files are bytes or cases by name, and the judge of the JSON that commands print."""

import json
from pathlib import Path
from typing import Any

import jsonschema

from mino.home import Home
from mino.journal import schema
from tests import homes
from tests.unit.journal.sample import CASES


def make_home(path: Path, data: bytes | str | None = None) -> Home:
    """A private home at `path`; its session, if it has one, holds `data`, or the case of that name."""
    return Home(str(homes.make_home(path, None if data is None else _content(data))), is_default=False)


def write(path: Path, data: bytes | str) -> Path:
    """A private file with `data`, or with the case of that name."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    return homes.write(path, _content(data))


def _content(data: bytes | str) -> bytes:
    return data if isinstance(data, bytes) else (CASES / f"{data}.jsonl").read_bytes()


def session_of(home: Home) -> Path:
    """The path of the session file that `make_home` writes."""
    return Path(home.sessions, homes.SESSION)


def judge(lines: str, name: str) -> list[Any]:
    """Each of the `lines` as JSON, all of them valid by the published schema `name`."""
    validator = jsonschema.Draft202012Validator(schema.load(name))
    values = [json.loads(line) for line in lines.splitlines()]
    for value in values:
        validator.validate(value)
    return values
