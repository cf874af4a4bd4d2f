"""The findings of `history verify`, and the state of a file that results (mino-record(5), STATES, FINDINGS)."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mino.errors import InvalidData
from mino.text import shell_word

State = Literal["clean", "recoverable", "invalid", "in-use"]

RECOVERABLE = ("torn-tail", "tail-syntax", "torn-write", "open-turn")
NEWER = ("unknown-version", "unknown-type", "unknown-field")  # written by a newer Mino, or edited by hand
INVALID = (
    *("not-a-session", "bad-json", "duplicate-key", *NEWER),
    *("bad-record", "bad-turn-id", "reused-turn-id", "bad-seq", "bad-order"),
)
NOTICES = ("wide-permissions",)
CODES = (*RECOVERABLE, *INVALID, *NOTICES)

# A file of a hundred million blank lines has as many findings; those beyond this number are counted and not kept.
KEPT_FINDINGS = 10_000


class BadLine(Exception):
    """One line that breaks a rule: the finding's code, and a sentence that says what was found and expected."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Finding(NamedTuple):
    """One finding: `line` counts from 1 (0: the file as a whole), `byte` is the offset of its first byte, from 0."""

    code: str
    line: int
    byte: int
    message: str


@dataclass(slots=True)
class Report:
    """The result of reading one file.

    `end` is the byte after the last complete record, where a torn tail is cut. `open_turn` is the id of a last turn
    without an end.
    """

    findings: list[Finding] = field(default_factory=list)
    dropped_findings: int = 0
    bytes: int = 0
    records: int = 0
    turns: Counter[str] = field(default_factory=Counter)
    end: int = 0
    next_seq: int = 1
    open_turn: str | None = None
    in_use: bool = False
    in_progress: bool = False  # a writer's unfinished end is left out of the findings

    def add(self, finding: Finding) -> None:
        """Keep `finding`, or count it once there are too many to hold."""
        if len(self.findings) < KEPT_FINDINGS:
            self.findings.append(finding)
        else:
            self.dropped_findings += 1

    def tolerate_writer(self) -> None:
        """Treat an unfinished last line or last turn as in progress, because another process is writing it now."""
        self.in_use = True
        findings = [finding for finding in self.findings if finding.code not in ("torn-tail", "open-turn")]
        self.in_progress = len(findings) < len(self.findings)
        self.findings = findings

    def refuse_stranger(self) -> None:
        """Judge the file as one outside every home: it is a session only if a line of it is a record.

        A line of a newer Mino counts too, so that it is called newer, and not a stranger.
        """
        if self.bytes and not self.records and all(finding.code not in NEWER for finding in self.findings):
            message = "found no record in the whole file, so it is not a conversation of Mino's"
            self.findings, self.dropped_findings = [Finding("not-a-session", 1, 0, message)], 0
            self.turns.clear()
            self.open_turn = None

    @property
    def state(self) -> State:
        """`clean`, `recoverable` or `invalid`; `in-use` for a file without findings that a writer holds."""
        codes = {finding.code for finding in self.findings} - set(NOTICES)
        if self.dropped_findings or any(code in INVALID or self.in_use for code in codes):
            return "invalid"
        if codes:
            return "recoverable"
        return "in-use" if self.in_use else "clean"

    @property
    def worst(self) -> Finding:
        """The finding to name for a file that is not clean: the first that makes it invalid, else the first."""
        return next((finding for finding in self.findings if finding.code in INVALID), self.findings[0])


def refuse_invalid(path: str, report: Report) -> None:
    """Raise InvalidData if `report` says that the file at `path` is invalid, with the place, the finding and a hint."""
    if report.state == "invalid":
        raise InvalidData(f"{place(path, report.worst)}; the file is unchanged", advice(path, report))


def place(path: str, finding: Finding) -> str:
    """`finding` in `path` as one clause: file, line, byte, code, and what was found."""
    return f"'{path}' line {finding.line} (byte {finding.byte}): {finding.code}: {finding.message}"


def advice(path: str, report: Report) -> str:
    """The next command for a file with this `report`; empty if it is clean or in use."""
    if report.state == "recoverable":
        return f"mino history recover {shell_word(path)}"
    if report.state != "invalid" or report.worst.code == "not-a-session":
        return ""
    if report.worst.code in NEWER:
        return mend(path, report.worst.line)
    return f"mino history recover --salvage --dry-run {shell_word(path)}"


def mend(path: str, line: int) -> str:
    """What to do about `line` of `path`, which a newer Mino wrote, or a person with an editor."""
    show = f"sed -n {line}p {shell_word(path)}"
    return f"update Mino, or mend the line by hand: {show} shows it; mino session new starts an empty conversation"
