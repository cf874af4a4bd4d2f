"""`mino history verify`: every finding of the conversation, or of any files. It never writes."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, get_args

from mino.errors import MinoError
from mino.home import Home
from mino.journal.findings import Report, State, advice
from mino.sessions.place import SESSION_NAME, find
from mino.sessions.reading import IN_USE, check
from mino.terminal import output
from mino.terminal.progress import Progress
from mino.terminal.prompt import read_stdin
from mino.text import count

MANY_FILES = 16  # from this number on it pays to start a process for each processor


def verify(
    home: Home, session: str | None, files: Sequence[str], *, as_json: bool, quiet: bool = False
) -> list[State | MinoError]:
    """Check the conversation, or `files` (`-`: their names on standard input), and print every finding.

    `quiet`: nothing else but the files that are not clean. Returns the state of each file, or the failure that kept it
    from being read. Writes nothing.
    """
    paths = list(_named(home, session, files))
    many = len(paths) >= MANY_FILES
    what = count(len(paths), "file") if len(paths) > 1 else f"'{''.join(paths)}'"
    progress = Progress(f"checking {what}", len(paths) if many else sum(map(_size, paths)))
    outcomes: Iterable[Report | MinoError] = (_check(home, path, progress.advance) for path in paths)
    if many:
        from mino.parallel import map_in_order  # pickle, which comes with it, is a fortieth of a short check

        outcomes = map_in_order(partial(_check, home), paths)
    states = []
    for path, outcome in zip(paths, outcomes, strict=True):
        states.append(_show(path, outcome, as_json, quiet))
        progress.advance(int(many))
    progress.clear()
    if len(paths) > 1 and not as_json and not quiet:
        output.show_lines([_format_states(states)])
    return states


def _named(home: Home, session: str | None, files: Sequence[str]) -> Iterator[str]:
    if not files:
        _, path = find(home, session, output.notice)
        if path:
            yield path
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


def _check(home: Home, path: str, advance: Callable[[int], None] = lambda _: None) -> Report | MinoError:
    try:
        return check(home, path, advance)
    except MinoError as failure:
        return failure


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


def _show(path: str, outcome: Report | MinoError, as_json: bool, quiet: bool) -> State | MinoError:
    if isinstance(outcome, MinoError):
        output.notice(outcome.message)
        return outcome
    if outcome.in_progress:
        output.notice(IN_USE)
    is_short = quiet and outcome.state == "clean"
    if not as_json:
        output.show_lines(format_report(path, outcome, is_short))
    elif not is_short or outcome.findings:
        output.show_json(report_json(path, outcome))
    if next_command := advice(path, outcome):
        output.hint(next_command)
    return outcome.state


def format_report(path: str, report: Report, is_short: bool = False) -> Iterable[str]:
    """A line for each finding, and unless it `is_short` one that sums up."""
    for finding in report.findings:
        yield f"{path}:{finding.line}: {finding.code}: {finding.message} (byte {finding.byte})"
    if report.dropped_findings:
        yield f"{path}: {count(report.dropped_findings, 'more finding')} not listed"
    if is_short:
        return
    turns = ", ".join(f"{number} {status}" for status, number in report.turns.items())
    total = count(report.turns.total(), "turn") + (f" ({turns})" if turns else "")
    yield f"{path}: {report.state}: {count(report.records, 'record')}, {total}"


def _format_states(states: Sequence[State | MinoError]) -> str:
    """The line that sums up many files: `3 files: 2 clean, 1 invalid`."""
    names = ["not read" if isinstance(each, MinoError) else each for each in states]
    numbers = (f"{names.count(name)} {name}" for name in (*get_args(State), "not read") if name in names)
    return f"{count(len(states), 'file')}: {', '.join(numbers)}"


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
