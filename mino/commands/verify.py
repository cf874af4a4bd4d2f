"""`mino history verify`: every finding of the session, or of any files. It never writes."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from mino.errors import MinoError
from mino.home import SESSION_NAME, Home, find_session
from mino.journal.findings import Report, State
from mino.sessions.reading import IN_USE, check
from mino.terminal import output
from mino.terminal.progress import Progress
from mino.terminal.prompt import read_stdin
from mino.text import count

MANY_FILES = 16  # from this number on it pays to start a process for each processor


def verify(home: Home, files: Sequence[str], *, as_json: bool) -> list[State | MinoError]:
    """Check the session, or `files` (`-`: their names on standard input), and print every finding.

    Returns the state of each file, or the failure to read it. It writes nothing.
    """
    paths = list(_named(home, files))
    if len(paths) < MANY_FILES:
        outcomes = (_check(home, path, alone=True) for path in paths)
        return [_show(path, outcome, as_json) for path, outcome in zip(paths, outcomes, strict=True)]
    from mino.parallel import map_in_order  # it imports pickle, which takes a fortieth of a short check

    progress = Progress(f"checking {len(paths)} files", len(paths))
    states = []
    for path, outcome in zip(paths, map_in_order(partial(_check, home, alone=False), paths), strict=True):
        progress.clear()
        states.append(_show(path, outcome, as_json))
        progress.advance(1)
    progress.clear()
    return states


def _named(home: Home, files: Sequence[str]) -> Iterator[str]:
    if not files:
        session = find_session(home)
        if session:
            yield session
        else:
            output.notice("there is no conversation yet")
    for file in files:
        if file == "-":
            yield from read_names()
        else:
            yield file


def read_names() -> Iterator[str]:
    """The file names on standard input: separated by NUL if there is one, else by newlines. Raises StorageFailed."""
    data = read_stdin()
    return (os.fsdecode(name) for name in data.split(b"\0" if b"\0" in data else b"\n") if name)


def _check(home: Home, path: str, *, alone: bool) -> Report | MinoError:
    progress = Progress(f"checking '{path}'", _size(path) if alone else 0)
    try:
        return check(home, path, progress.advance)
    except MinoError as failure:
        return failure
    finally:
        progress.clear()


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


def _show(path: str, outcome: Report | MinoError, as_json: bool) -> State | MinoError:
    if isinstance(outcome, MinoError):
        output.notice(outcome.message)
        return outcome
    if outcome.in_progress:
        output.notice(IN_USE)
    if as_json:
        output.show_json(report_json(path, outcome))
    else:
        output.show_lines(format_report(path, outcome))
    return outcome.state


def format_report(path: str, report: Report) -> Iterable[str]:
    """A line for each finding, and one that sums up."""
    for finding in report.findings:
        yield f"{path}:{finding.line}: {finding.code}: {finding.message} (byte {finding.byte})"
    if report.dropped_findings:
        yield f"{path}: {count(report.dropped_findings, 'more finding')} not listed"
    turns = ", ".join(f"{number} {status}" for status, number in report.turns.items())
    total = count(report.turns.total(), "turn") + (f" ({turns})" if turns else "")
    yield f"{path}: {report.state}: {count(report.records, 'record')}, {total}"


def report_json(path: str, report: Report) -> dict[str, Any]:
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
