"""`mino history verify`: every finding of the session, or of any files. Never writes."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mino import terminal
from mino.conversation import open_for_reading, tell_in_use
from mino.errors import MinoError, StorageFailed
from mino.home import SESSION_NAME, Home, find_session, home_of, is_session, wide_file, wide_places
from mino.journal.file import chunks, open_failure
from mino.journal.findings import Finding, Report
from mino.journal.loader import Loading
from mino.progress import Progress

STATE_STATUS = {"clean": 0, "in-use": 0, "recoverable": 1, "invalid": 65}
# Of several files the worst state or failure decides, in this order (spec section 9).
WORST_FIRST = (65, 66, 77, 74, 1, 0)
MANY_FILES = 16  # from here on it pays to start a process for each processor


def verify(home: Home, files: Sequence[str], *, as_json: bool) -> int:
    """Check the session, or `files` (`-`: their names on standard input), and print every finding.

    The exit status: the worst of the files. Writes nothing.
    """
    paths = list(_named(home, files))
    if len(paths) < MANY_FILES:
        outcomes = (_check_one(home, path, alone=True) for path in paths)
        return _worst(_tell(path, outcome, as_json) for path, outcome in zip(paths, outcomes, strict=True))
    from mino.parallel import map_in_order  # pickle, which comes with it, is a fortieth of a short check

    progress = Progress(f"checking {len(paths)} files", len(paths))
    statuses = []
    for path, outcome in zip(paths, map_in_order(lambda path: _check_one(home, path, alone=False), paths), strict=True):
        progress.clear()
        statuses.append(_tell(path, outcome, as_json))
        progress.advance(1)
    progress.clear()
    return _worst(statuses)


def _worst(statuses: Iterable[int]) -> int:
    return min(statuses, key=WORST_FIRST.index, default=0)


def _named(home: Home, files: Sequence[str]) -> Iterator[str]:
    if not files:
        session = find_session(home)
        if session:
            yield session
        else:
            terminal.notice("there is no conversation yet")
    for file in files:
        if file == "-":
            yield from read_names()
        else:
            yield file


def read_names() -> Iterator[str]:
    """The file names on standard input: separated by NUL where there is one, else by newlines. Raises StorageFailed."""
    try:
        data = sys.stdin.buffer.read() if sys.stdin else b""
    except OSError as error:
        raise StorageFailed(f"cannot read standard input: {error.strerror}") from None
    separator = b"\0" if b"\0" in data else b"\n"
    return (os.fsdecode(name) for name in data.split(separator) if name)


def _check_one(home: Home, path: str, *, alone: bool) -> Report | MinoError:
    try:
        return check(home, path, Progress(f"checking '{path}'", _size(path) if alone else 0))
    except MinoError as failure:
        return failure


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


def _tell(path: str, outcome: Report | MinoError, as_json: bool) -> int:
    if isinstance(outcome, MinoError):
        terminal.notice(outcome.message)
        return outcome.status
    if outcome.in_use:
        tell_in_use()
    if as_json:
        terminal.show_json(describe_report(path, outcome))
    else:
        terminal.show_lines(write_report(path, outcome))
    return STATE_STATUS[outcome.state]


def check(home: Home, path: str, progress: Progress) -> Report:
    """The report on the file at `path`, all its findings; a file that a writer is writing is told from a torn one.

    Raises NotThere, AccessRefused or StorageFailed.
    """
    place_of = home_of(home, path)
    if place_of:
        with open_for_reading(place_of, path) as (fd, in_use):
            report = _load(fd, path, progress)
        session = is_session(place_of, path)
        if in_use and session:
            report.tolerate_writer()
        for wide_path, mode, wanted in (*wide_file(path), *(wide_places(place_of) if session else ())):
            message = f"'{wide_path}' has mode {mode:04o}, expected {wanted:04o}"
            report.findings.insert(0, Finding("wide-permissions", 0, 0, message))
        return report
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise open_failure(path, error) from None
    try:
        return _load(fd, path, progress)
    finally:
        os.close(fd)


def _load(fd: int, path: str, progress: Progress) -> Report:
    report = Loading(_watched(chunks(fd, path), progress), all_findings=True).judge()
    progress.clear()
    return report


def _watched(chunks: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        progress.advance(len(chunk))


def write_report(path: str, report: Report) -> Iterable[str]:
    """A line a finding, and one that sums up."""
    for finding in report.findings:
        yield f"{path}:{finding.line}: {finding.code}: {finding.message} (byte {finding.byte})"
    if report.dropped_findings:
        yield f"{path}: {terminal.count(report.dropped_findings, 'more finding')} not listed"
    turns = ", ".join(f"{number} {status}" for status, number in report.turns.items())
    total = terminal.count(report.turns.total(), "turn") + (f" ({turns})" if turns else "")
    yield f"{path}: {report.state}: {terminal.count(report.records, 'record')}, {total}"


def describe_report(path: str, report: Report) -> dict[str, Any]:
    """A report by `schemas/report.v1.schema.json`."""
    statuses = ("completed", "failed", "cancelled", "interrupted", "open")
    name = os.path.basename(path)
    return {
        "file": path,
        "session_id": name.removesuffix(".jsonl") if SESSION_NAME.fullmatch(name) else None,
        "state": report.state,
        "bytes": report.bytes,
        "records": report.records,
        "turns": {status: report.turns[status] for status in statuses},
        "findings": [
            {"code": finding.code, "line": finding.line, "byte": finding.byte, "message": finding.message}
            for finding in report.findings
        ],
    }
