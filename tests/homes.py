"""Homes, journals to put into them, and what commands print: files written and read byte for byte."""

import hashlib
import json
import os
import re
import tempfile
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, cast

import jsonschema

from mino.home import Home
from mino.journal import schema
from mino.journal.findings import State
from mino.journal.loader import Loading
from mino.journal.order import Turn
from mino.journal.record import EndStatus, Record, assistant_message, encode, turn_end, user_message
from mino.sessions.conversation import lock
from mino.sessions.place import Place
from tests.unit.journal.sample import CASES, FIRST

SESSION = f"{FIRST}.jsonl"
NAMED = "检查点 🏕"
EACH_KIND = (None, NAMED)  # the unnamed conversation, and one with a name that needs care


def case(name: str) -> bytes:
    """The journal of the case of that name."""
    return (CASES / f"{name}.jsonl").read_bytes()


def completed(*pairs: tuple[str, str]) -> bytes:
    """A journal of completed turns, whose ids follow from their texts, so that every run has the same."""
    records: list[Record] = []
    for question, answer in pairs:
        digits = hashlib.sha256(f"{question}\0{answer}".encode()).hexdigest()
        turn_id, seq = f"0193a0b1c2d37{digits[:3]}8{digits[3:18]}", len(records) + 1
        records.append(user_message(seq, turn_id, question))
        records.append(assistant_message(seq + 1, turn_id, answer, None))
        records.append(turn_end(seq + 2, turn_id, "completed"))
    return b"".join(encode(record) for record in records)


def ended(number: int, turn_id: str, question: str, status: EndStatus) -> bytes:
    """The records of a turn without an answer, `number` being its first seq."""
    return encode(user_message(number, turn_id, question)) + encode(turn_end(number + 1, turn_id, status))


def numbered(*journals: bytes) -> bytes:
    """The records of `journals` after one another, numbered on."""
    records: list[Any] = [json.loads(line) for line in b"".join(journals).split(b"\n")[:-1]]
    return b"".join(encode(cast("Record", {**record, "seq": seq})) for seq, record in enumerate(records, 1))


def make_home(place: Path, session: bytes | None, **saved: bytes) -> Path:
    """A home at `place` with an unnamed conversation of that content (None: none yet), and named ones."""
    (place / "sessions").mkdir(parents=True, mode=0o700)
    place.chmod(0o700)
    if session is not None:
        write(place / "sessions" / SESSION, session)
    for name, content in saved.items():
        save(place, name, content)
    return place


def open_home(place: Path, session: bytes | None = None, **saved: bytes) -> Home:
    """As `make_home`; the home as the program knows it."""
    return Home(str(make_home(place, session, **saved)), is_default=False)


def save(home: Path, name: str, content: bytes) -> Path:
    """Put a named conversation there."""
    return write(home / "saved" / f"{name}.jsonl", content)


def write(path: Path, content: bytes) -> Path:
    """Write a private file, in a private folder that is made if it is missing."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def go_on(home: Path, content: bytes) -> None:
    """Let the unnamed conversation go on, as `mino ask` would, by the turns of `content`."""
    write(home / "sessions" / SESSION, numbered(session_of(home), content))


def session_path(home: Home) -> Path:
    """The path of the session file that `make_home` writes."""
    return Path(home.sessions, SESSION)


def path_in(home: Home, name: str | None) -> Path:
    """The file of the conversation called `name`, or of the unnamed one that `make_home` writes."""
    return session_path(home) if name is None else Path(home.saved, f"{name}.jsonl")


def home_with(place: Path, name: str | None, content: bytes) -> Home:
    """A home whose one conversation, called `name` or unnamed (None), has that content."""
    return open_home(place, content) if name is None else open_home(place, None, **{name: content})


def copy_path(home: Home, name: str | None, number: int = 0) -> Path:
    """A path that a recovery copy of that conversation can have."""
    path = path_in(home, name)
    return path.with_name(f"{path.stem}-recovery-20260101T000000Z-{number:08x}.jsonl")


def hold(home: Home, name: str | None = None) -> AbstractContextManager[None]:
    """The lock of that conversation, as another writer holds it; nothing may be told."""
    return lock(Place(home, name), 0, refuse_telling)


def session_of(home: Path) -> bytes:
    """The content of the one session file, which every home must have."""
    (path,) = (each for each in (home / "sessions").iterdir() if re.fullmatch(r"[0-9a-f]{32}\.jsonl", each.name))
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_bytes()


def saved_in(home: Path) -> dict[str, bytes]:
    """The content of every file in `saved/` but the locks, by name without its ending."""
    files = [each for each in (home / "saved").glob("*") if not each.name.endswith(".lock")]
    return {each.name.removesuffix(".jsonl"): each.read_bytes() for each in files}


def turns_of(content: bytes) -> list[Turn]:
    """The turns of a journal, which must be clean."""
    loading = Loading([content])
    turns = list(loading)
    assert loading.report.state == "clean", loading.report.findings
    return turns


def state_of(content: bytes) -> State:
    """What the loader says of a journal."""
    loading = Loading([content])
    list(loading)
    return loading.report.state


def questions(content: bytes) -> list[str]:
    """The questions of a clean journal."""
    return [turn.user for turn in turns_of(content)]


def refuse_telling(sentence: str) -> NoReturn:
    """Takes what is told where nothing may be told."""
    raise AssertionError(sentence)


def judge(lines: str, name: str) -> list[Any]:
    """Each of the `lines` as JSON, all of them valid by the published schema `name`."""
    validator = jsonschema.Draft202012Validator(schema.load(name))
    values = [json.loads(line) for line in lines.splitlines()]
    for value in values:
        validator.validate(value)
    return values


@cache
def obeys_modes() -> bool:
    """Whether file modes hold for this process; for root they do not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o500)
        return not os.access(folder, os.W_OK)
