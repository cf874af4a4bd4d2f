"""`mino history recover`: make a recoverable file clean; with `--salvage` keep every whole turn of an invalid one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from mino import disk, signals
from mino.commands.session import READERS
from mino.errors import InvalidData, SessionInUse
from mino.home import Home
from mino.journal import recovery
from mino.journal.file import Journal
from mino.journal.findings import Report, refuse_invalid
from mino.journal.loader import Loading
from mino.journal.recovery import Recovery
from mino.journal.salvage import Region, Salvage, refuse_empty, rehearse, salvage
from mino.sessions.conversation import format_recovery, lock
from mino.sessions.place import Place, find, place_of
from mino.sessions.reading import open_for_reading
from mino.terminal import output
from mino.text import count, shell_word

MAX_IMPORT = 16_000_000  # bytes of another program's file that are read for a hint


def recover(
    home: Home, session: str | None, wait: float, file: str | None, *, dry_run: bool, with_salvage: bool, as_json: bool
) -> bool:
    """Recover the conversation, or `file`, and print what was done, or with `dry_run` what would be.

    Returns whether a dry run found something to do. Raises InvalidData for an invalid file without
    `with_salvage`, for one of which no turn can be kept, and for one that is not Mino's, SessionInUse, StorageFailed
    and the like; the file is then as it was.
    """
    place, path = find(home, session, output.notice) if file is None else (place_of(home, file), file)
    if path is None:
        output.notice("there is no conversation yet")
        return False
    way_out = "mino session new" if place and place.home == home and place.is_at(path) else ""
    with _open(place, wait, path, dry_run) as (journal, report):
        if not place:
            _refuse_stranger(journal, report)
        with signals.deferred():  # otherwise an unfinished recovery copy could stay
            done, salvaged = _rehearse(journal, report) if dry_run else _do(journal, report, with_salvage, way_out)
        if dry_run and not with_salvage:
            refuse_invalid(path, report)
    if as_json:
        output.show_json(recovery_json(path, report, done, salvaged, dry_run))
    else:
        output.show_lines(_format(path, done, salvaged, dry_run))
    if salvaged:
        refuse_empty(path, salvaged, way_out)
    if not dry_run or not (done.is_needed or salvaged):
        return False
    output.hint(f"mino history recover {'--salvage ' if salvaged else ''}{shell_word(path)}")
    return True


def _refuse_stranger(journal: Journal, report: Report) -> None:
    """Raise InvalidData if the file, which is in no home, has no record: it is a key, a note, another program's."""
    report.refuse_stranger()
    if report.findings and report.worst.code == "not-a-session":
        words = f"'{journal.path}' is not a conversation of Mino's: no line of it is a record; the file is unchanged"
        raise InvalidData(words, _import_hint(journal))


def _import_hint(journal: Journal) -> str:
    """How to import the file, if it is a conversation of another program; an error in it is not its owner's concern."""
    if journal.size > MAX_IMPORT:
        return ""
    data = b"".join(journal.chunks())
    for kind, read in READERS.items():
        with suppress(InvalidData):
            if read(data, journal.path).turns:
                return f"mino session import NAME {shell_word(journal.path)} --from {kind}"
    return ""


@contextmanager
def _open(place: Place | None, wait: float, path: str, dry_run: bool) -> Iterator[tuple[Journal, Report]]:
    """The file at `path` and its report; for a dry run as a reader opens it, else as the one writer does."""
    if dry_run and place:
        with open_for_reading(place, path) as (fd, in_use):
            if in_use:
                raise SessionInUse(f"{place} is in use by another process", "try again when it has ended")
            yield _load(place, path, fd)
        return
    with lock(place, wait, output.notice) if place else nullcontext():
        if place and place.is_at(path):
            place.find()  # it raises if there is more than one: then none is touched
        with disk.opened(path, os.O_RDONLY if dry_run else os.O_RDWR | os.O_APPEND) as fd:
            yield _load(place, path, fd)


def _load(place: Place | None, path: str, fd: int) -> tuple[Journal, Report]:
    report = Loading(disk.chunks(fd, path), all_findings=True).judge()
    return Journal(path, fd, report.bytes, report.next_seq, place.owner if place else ""), report


def _rehearse(journal: Journal, report: Report) -> tuple[Recovery, Salvage | None]:
    if report.state == "invalid":
        return Recovery(report.state), rehearse(journal.path, journal.chunks())
    return recovery.plan(report), None


def _do(journal: Journal, report: Report, with_salvage: bool, way_out: str) -> tuple[Recovery, Salvage | None]:
    if report.state == "invalid" and with_salvage:
        copy, salvaged = salvage(journal, way_out)
        return Recovery(report.state, copy=copy), salvaged
    return recovery.recover(journal, report), None


def _format(path: str, done: Recovery, salvaged: Salvage | None, dry_run: bool) -> Iterator[str]:
    if not salvaged:
        words = f"{'recovery would ' if dry_run else 'recovered: '}{format_recovery(done, planned=dry_run)}"
        yield f"{path}: " + (words if done.is_needed else "nothing to do")
        return
    copy = f"; the whole file is in '{done.copy}'" if done.copy else ""
    kept = count(salvaged.kept, "turn")
    yield f"{path}: " + (f"salvage would keep {kept}" if dry_run else f"salvaged: {kept} kept{copy}")
    for region in salvaged.dropped:
        yield f"{path}:{_span(region)}: dropped: {region.why}"
        if region.question is not None:
            yield from (f"> {line}" for line in region.question.split("\n"))


def _span(region: Region) -> str:
    first, last = region.first_line, region.last_line
    return f"{first}" if first == last else f"{first}-{last}"


def recovery_json(path: str, report: Report, done: Recovery, salvaged: Salvage | None, dry_run: bool) -> dict[str, Any]:
    """What was done, by `schemas/recovery.v1.schema.json`."""
    action = "salvaged" if salvaged else "recovered" if done.is_needed else "none"
    return {
        "file": path,
        "state": report.state,
        "action": action,
        "dry_run": dry_run,
        "recovery_copy": done.copy,
        "cut_bytes": done.cut_bytes,
        "closed_turn": done.closed_turn,
        "kept_turns": salvaged.kept if salvaged else report.turns.total(),
        "dropped": [
            {
                "first_line": region.first_line,
                "last_line": region.last_line,
                "why": region.why,
                "question": region.question,
            }
            for region in (salvaged.dropped if salvaged else ())
        ],
    }
