"""A home with one session file, and the judges of the JSON that commands print."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema

from mino.home import Home
from mino.journal import schema
from tests.unit.journal.sample import CASES, FIRST


def make_home(path: Path, data: bytes | str | None = None, name: str = FIRST) -> Home:
    """A private home at `path`; its session holds `data`, or the case of that name."""
    home = Home(str(path), False)
    os.makedirs(home.sessions, 0o700, exist_ok=True)
    path.chmod(0o700)
    if data is not None:
        write(Path(home.sessions, f"{name}.jsonl"), data)
    return home


def write(path: Path, data: bytes | str) -> Path:
    """A private file with `data`, or with the case of that name."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(0o600)
    path.write_bytes(data if isinstance(data, bytes) else (CASES / f"{data}.jsonl").read_bytes())
    return path


def session_of(home: Home) -> Path:
    return Path(home.sessions, f"{FIRST}.jsonl")


def judge(lines: str, name: str) -> list[Any]:
    """Each of the `lines` as JSON, all of them valid by the published schema `name`."""
    validator = jsonschema.Draft202012Validator(schema.load(name))
    values = [json.loads(line) for line in lines.splitlines()]
    for value in values:
        validator.validate(value)
    return values
