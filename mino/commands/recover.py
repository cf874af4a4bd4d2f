"""`mino history recover`: make a recoverable file clean; with `--salvage` keep every whole turn of an invalid one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from mino import disk, signals
from mino.commands.source import format_salvage, refuse_stranger, way_out
from mino.errors import SessionInUse
from mino.home import Home
from mino.journal import recovery
from mino.journal.file import Journal
from mino.journal.findings import Report, refuse_invalid
from mino.journal.loader import Loading
from mino.journal.recovery import Recovery
from mino.journal.salvage import Salvage, refuse_empty, rehearse, salvage
from mino.sessions.conversation import format_recovery, lock
from mino.sessions.place import Place, find, place_of
from mino.sessions.reading import open_for_reading
from mino.terminal import output
from mino.text import shell_word


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
    if_empty = way_out(home, path)
    with _open(place, wait, path, dry_run) as (journal, report):
        if not place:
            report.refuse_stranger()
            refuse_stranger(path, report, "; the file is unchanged")
        with signals.deferred():  # otherwise an unfinished recovery copy could stay
            done, salvaged = _rehearse(journal, report) if dry_run else _do(journal, report, with_salvage, if_empty)
        if dry_run and not with_salvage:
            refuse_invalid(path, report)
    if as_json:
        output.show_json(recovery_json(path, report, done, salvaged, dry_run))
    else:
        output.show_lines(_format(path, done, salvaged, dry_run))
    if salvaged:
        refuse_empty(path, salvaged, if_empty)
    if done.copy:
        output.hint(f"mino history show {shell_word(done.copy)}")
    if not dry_run or not (done.is_needed or salvaged):
        return False
    output.hint(f"mino history recover {'--salvage ' if salvaged else ''}{shell_word(path)}")
    return True


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


def _do(journal: Journal, report: Report, with_salvage: bool, if_empty: str) -> tuple[Recovery, Salvage | None]:
    if report.state == "invalid" and with_salvage:
        copy, salvaged = salvage(journal, if_empty)
        return Recovery(report.state, copy=copy), salvaged
    return recovery.recover(journal, report), None


def _format(path: str, done: Recovery, salvaged: Salvage | None, dry_run: bool) -> Iterator[str]:
    if salvaged:
        yield from format_salvage(path, salvaged, dry_run, done.copy)
        return
    words = f"{'recovery would ' if dry_run else 'recovered: '}{format_recovery(done, planned=dry_run)}"
    yield f"{path}: " + (words if done.is_needed else "nothing to do")


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
