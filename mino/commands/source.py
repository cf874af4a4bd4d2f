"""What `show` and `export` read: a conversation of the home, a file that a person names, or standard input."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from mino import disk
from mino.errors import InvalidData, MinoError
from mino.home import Home
from mino.journal.findings import NEWER, Report, advice, place
from mino.sessions.place import place_of
from mino.sessions.reading import Reading, Wanted, read_chunks, read_file, read_session, tell_state
from mino.terminal import output
from mino.terminal.prompt import stdin_chunks
from mino.text import count, shell_word

if TYPE_CHECKING:
    from mino.journal.salvage import Region, Salvage

STDIN = "-"


def read(home: Home, session: str | None, file: str | None, wanted: Wanted) -> Reading | None:
    """The conversation in `file` (`-`: on standard input), or without one that of `session`; None if there is none yet.

    What has no turns because it is empty, or not there yet, is reported. Raises InvalidData for a file that is not a
    conversation, and as `read_session` and `read_file` do.
    """
    if file is None:
        reading = read_session(home, session, output.notice, **wanted._asdict())
        if not reading:
            output.notice("there is no conversation yet")
        return reading
    try:
        reading = read_chunks(file, stdin_chunks(), wanted) if file == STDIN else read_file(home, file, wanted)
    except InvalidData as failure:  # by a salvage
        raise InvalidData(failure.message, failure.hint if _place_of(file) else "") from None
    if reading.elsewhere and not reading.report.bytes:
        output.notice("standard input is empty" if file == STDIN else f"'{file}' is empty")
    refuse_stranger(file, reading.report)
    return reading


def refuse_stranger(path: str, report: Report, outcome: str = "") -> None:
    """Raise InvalidData if no line of the file is a record: it is a key, a note, another program's."""
    if report.findings and report.worst.code == "not-a-session":
        words = f"'{path}' is not a conversation of Mino's: no line of it is a record{outcome}"
        raise InvalidData(words, _import_hint(path))


def _import_hint(path: str) -> str:
    """How to import the file, if it is a conversation of another program; an error in it is not its owner's concern."""
    from mino.commands.session import READERS

    if not _place_of(path):
        return ""
    with suppress(MinoError):
        data = disk.read_text_file(path)
        for kind, read_turns in READERS.items():
            with suppress(InvalidData):
                if read_turns(data, path).turns:
                    return f"mino session import NAME {shell_word(path)} --from {kind}"
    return ""


def _place_of(path: str) -> str:
    """The file at `path`, links followed, because no writer does; empty for a pipe, which cannot be read again."""
    if path == STDIN or not os.path.isfile(path):
        return ""
    known = os.path.realpath(path) if os.path.islink(path) else path
    return f"./{known}" if known.startswith("-") else known


def with_file(command: str, file: str | None) -> str:
    """`command` for the same conversation; empty if that came by a pipe, which cannot be read again."""
    if file is None:
        return command
    known = _place_of(file)
    return f"{command} {shell_word(known)}" if known else ""


def refuse_invalid(reading: Reading) -> None:
    """Raise InvalidData if the file is invalid, with a hint that leads to the turns that can be read all the same."""
    report = reading.report
    if report.state == "invalid":
        known = _place_of(reading.path)
        hint = f"mino history show --salvage {shell_word(known)}"
        if report.worst.code in NEWER:
            hint = advice(known, report)
        raise InvalidData(place(reading.path, report.worst), hint if known else "")


def tell_rest(home: Home, reading: Reading, file: str | None) -> None:
    """Report why the conversation is not clean, and what a salvage drops. Raises InvalidData if it is invalid."""
    if reading.salvaged:
        _tell_salvage(home, reading)
        return
    refuse_invalid(reading)
    if file is None:
        tell_state(reading.path, reading.report, output.notice)
        return
    tell_state(file, reading.report, output.notice, outlook="")  # no question goes to that file
    if reading.report.state == "recoverable" and (known := _place_of(file)):
        output.hint(f"mino history recover {shell_word(known)}")


def _tell_salvage(home: Home, reading: Reading) -> None:
    """Report what a salvage drops, as its dry run does. Raises InvalidData if there is anything."""
    from mino.journal.salvage import refuse_empty

    salvaged, report = reading.salvaged, reading.report
    assert salvaged
    for line in format_salvage(reading.path, salvaged, dry_run=True):
        output.notice(line)
    refuse_empty(reading.path, salvaged, way_out(home, reading.path))
    known = _place_of(reading.path)
    hint = f"mino history recover --salvage {shell_word(known)}" if known else ""
    if salvaged.dropped:
        raise InvalidData(place(reading.path, report.worst), hint)
    output.notice(place(reading.path, report.worst))
    if hint:
        output.hint(hint)


def way_out(home: Home, path: str) -> str:
    """What to do if no turn of the file can be kept; empty if that is no conversation of `home`."""
    guard = place_of(home, path)
    return "mino session new" if guard and guard.home == home and guard.is_at(path) else ""


def format_salvage(path: str, salvaged: "Salvage", dry_run: bool, recovery_copy: str | None = None) -> Iterator[str]:
    """What a salvage kept and dropped, or with `dry_run` would."""
    where = f"; the whole file is in '{recovery_copy}'" if recovery_copy else ""
    kept = count(salvaged.kept, "turn")
    yield f"{path}: " + (f"salvage would keep {kept}" if dry_run else f"salvaged: {kept} kept{where}")
    for region in salvaged.dropped:
        yield f"{path}:{_span(region)}: dropped: {region.why}"
        if region.question is not None:
            yield from (f"> {line}" for line in region.question.split("\n"))


def _span(region: "Region") -> str:
    first, last = region.first_line, region.last_line
    return f"{first}" if first == last else f"{first}-{last}"
