"""Removing turns from a file for good (mino-history(1), `forget`); the one operation that keeps no copy.

In an undamaged file it removes a turn's records. In a damaged one parts of a turn may be in lines that can no longer be
read, so it removes every line from the turn's first record up to the next readable record of another turn.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass

import orjson

from mino import disk
from mino.journal import scan
from mino.journal.findings import BadLine
from mino.journal.loader import Loading
from mino.journal.record import Record, encode

_ID = re.compile(rb"[0-9a-f]{32}")
_ANY_ID = re.compile(rb"(?=([0-9a-f]{32}))")  # at each place, because a run of digits may be longer than an id


@dataclass(slots=True)
class Removal:
    """Lines of a file that hold a turn, the first and the last, from 1."""

    turn_id: str
    first_line: int
    last_line: int


def forget(path: str, turn_ids: Set[str], owner: str, *, dry_run: bool) -> list[Removal]:
    """Remove the turns from the file at `path`, in one rename, or with `dry_run` find them; returns where they are.

    A file without damage before its end is renumbered, as in a salvage; in any other file the lines that remain are
    kept byte for byte. Raises as `disk.open_regular` and `disk.replace` do; the file is then as it was.
    """
    with disk.opened(path) as fd:
        removals = list(find(disk.chunks(fd, path), turn_ids))
        if removals and not dry_run:
            os.lseek(fd, 0, os.SEEK_SET)
            renumber = Loading(disk.chunks(fd, path)).judge().state != "invalid"
            os.lseek(fd, 0, os.SEEK_SET)
            disk.replace(path, without(disk.chunks(fd, path), removals, renumber=renumber), owner)
    return removals


def find(chunks: Iterable[bytes], turn_ids: Set[str]) -> Iterator[Removal]:
    """Where the turns are in a file, each from its first record to the last line that may belong to it."""
    named_in = naming(turn_ids)
    removal: Removal | None = None
    # The first of the unreadable lines before this one; if a turn has no question, the question is among them.
    loose = 0
    for number, line, record in scan.number(scan.split(chunks, hold=True)):
        owner = _owner(line, record)
        if owner is None:
            owner = named_in(line)  # a broken line that names a turn belongs to it
            if owner is None and removal is None:
                loose = loose or number
                continue
        if owner is not None and (removal is None or owner != removal.turn_id):
            if removal:
                yield removal
            removal = None
            if owner in turn_ids:
                first = loose if loose and b'"user_message"' not in line else number
                removal = Removal(owner, first, number)
        if removal:
            removal.last_line = number
        loose = 0
    if removal:
        yield removal


def naming(turn_ids: Set[str]) -> Callable[[bytes], str | None]:
    """A function that finds one of the turns in bytes, or None; it is as fast for ten thousand ids as for one."""
    usual = {turn_id.encode(): turn_id for turn_id in turn_ids if _ID.fullmatch(turn_id.encode())}
    odd = {turn_id.encode(): turn_id for turn_id in turn_ids if turn_id.encode() not in usual}

    def named_in(data: bytes) -> str | None:
        found = next((usual[match[1]] for match in _ANY_ID.finditer(data) if match[1] in usual), None)
        return found or next((turn_id for name, turn_id in odd.items() if name in data), None)

    return named_in


def without(chunks: Iterable[bytes], removals: Iterable[Removal], *, renumber: bool) -> Iterator[bytes]:
    """The file without the lines of `removals`, which are in order; with `renumber` its records count from 1 again."""
    rest = iter(removals)
    removal = next(rest, None)
    seq = 1
    for number, line, record in scan.number(scan.split(chunks, hold=True)):
        if removal and number > removal.last_line:
            removal = next(rest, None)
        if removal and number >= removal.first_line:
            continue
        if renumber and not isinstance(record, BadLine):
            record["seq"] = seq
            seq += 1
            yield encode(record)
        else:
            yield line


def ids_in(chunks: Iterable[bytes]) -> set[str]:
    """The id of every turn that has a readable record in the file."""
    owners = (_owner(line, record) for _, line, record in scan.number(scan.split(chunks, hold=True)))
    return {owner for owner in owners if owner is not None}


def _owner(line: bytes, record: Record | BadLine) -> str | None:
    """The turn of a line; None if it cannot be read. A record of a newer Mino is readable enough to be spared."""
    if not isinstance(record, BadLine):
        return record["turn_id"]
    try:
        value = orjson.loads(line)
    except ValueError:
        return None
    owner = value.get("turn_id") if isinstance(value, dict) else None
    return owner if isinstance(owner, str) else None
