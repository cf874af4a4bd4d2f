"""A program on a terminal: a pseudo-terminal with a screen that obeys what is written to it, as a person would see it.

    with Terminal(mino.command("chat"), mino.environ) as terminal:
        terminal.wait_for("You> ")
        terminal.press("你好\\r")
    assert terminal.status == 0

The screen knows what the line editor and Mino use, and nothing else: an unknown sequence is an error of the test, so
that nothing gets to a user's terminal that was not meant to.
"""

import codecs
import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from wcwidth import wcwidth

PATIENCE = 15.0
# What a shell does: it leads the session, and runs the program as the job in the foreground. If the program led the
# session itself, its end would reset the terminal, and nobody could see whether the program had restored it.
_LEADER = """
import fcntl, json, os, signal, sys, termios
report, ignored, command = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
modes = termios.tcgetattr(0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if not job:
    os.close(report)
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    for number in (signal.SIGTTOU, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    os.execvp(command[0], command)
def forward(number, frame):
    try:
        os.kill(job, number)
    except ProcessLookupError:
        pass  # it ended first
signal.signal(signal.SIGHUP, forward)
os.write(report, b"%d\\n" % job)
status = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
try:
    restored = termios.tcgetattr(0) == modes
except termios.error:
    restored = False
os.write(report, json.dumps([status, restored]).encode())
"""
_SEQUENCE = re.compile(r"\x1b\[([?]?)([0-9;]*)([A-Za-z])")
# Modes that change nothing on this screen: cursor keys, blinking and showing the cursor, bracketed paste.
_MODES = {"1", "12", "25", "2004"}


class Screen:
    """What stands on a terminal of so many columns and rows, and above it what was scrolled out."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.column = 0
        self._rows: list[list[str]] = [[]]
        self._row = 0
        self._top = 0
        self._rest = ""
        self._wraps = True

    @property
    def lines(self) -> list[str]:
        """The lines without the blanks at their ends."""
        return ["".join(row).rstrip() for row in self._rows]

    @property
    def text(self) -> str:
        """All lines, without empty ones at the end."""
        return "\n".join(self.lines).rstrip("\n")

    def feed(self, text: str) -> None:
        """Obey `text`."""
        text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = _SEQUENCE.match(text, at)
                if not match:
                    assert len(text) - at < 12 and re.fullmatch(r"\x1b(\[[?0-9;]*)?", text[at:]), (
                        f"unknown: {text[at:]!r}"
                    )
                    self._rest = text[at:]
                    return
                self._obey(*match.groups())
                at = match.end()
            else:
                self._put(text[at])
                at += 1

    def _obey(self, private: str, numbers: str, letter: str) -> None:
        count = int(numbers.split(";")[0] or "1") if letter in "ABCD" else 0
        match private + letter:
            case "A":
                self._row = max(self._top, self._row - count)
            case "B":
                self._row = min(self._top + self.rows - 1, self._row + count)
            case "C":
                self.column = min(self.columns - 1, self.column + count)
            case "D":
                self.column = max(0, min(self.column, self.columns - 1) - count)
            case "K" if numbers in ("", "0"):
                del self._here()[self.column :]
            case "J" if numbers in ("", "0"):
                del self._here()[self.column :]
                del self._rows[self._row + 1 :]
            case "m":
                pass
            case "?h" | "?l" if numbers == "7":
                self._wraps = letter == "h"
            case "?h" | "?l" if numbers in _MODES:
                pass
            case _:
                raise AssertionError(f"an unknown sequence: {private}{numbers}{letter}")

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._feed_line()
        elif character == "\b":
            self.column = max(0, min(self.column, self.columns - 1) - 1)
        elif character == "\t":
            self.column = min(self.columns - 1, self.column // 8 * 8 + 8)
        elif character != "\a":
            assert character >= " " and character != "\x7f", f"a control character: {character!r}"
            self._write(character)

    def _write(self, character: str) -> None:
        width = wcwidth(character)
        if width == 0:
            return
        if self.column + width > self.columns:
            if self._wraps:
                self._feed_line()
                self.column = 0
            else:
                self.column = self.columns - width
        row = self._here()
        row += " " * (self.column + width - len(row))
        # The second half of a wide character holds nothing.
        row[self.column : self.column + width] = [character, ""][:width]
        self.column += width

    def _feed_line(self) -> None:
        self._row += 1
        self._top = max(self._top, self._row - self.rows + 1)

    def _here(self) -> list[str]:
        while len(self._rows) <= self._row:
            self._rows.append([])
        row = self._rows[self._row]
        row += " " * (self.column - len(row))
        return row


class Terminal:
    """A program in the foreground of a terminal of its own, which is its stdin, stdout and stderr.

    After the `with` block `status` is its exit status, or the negative number of the signal that killed it, and
    `restored` says whether the terminal echoes and edits lines as it did before. `raw` is all that was written.
    """

    status: int
    restored: bool

    def __init__(
        self,
        command: Sequence[str | bytes],
        environ: Mapping[str, str],
        *,
        columns: int = 80,
        term: str = "xterm-256color",
        ignored: Sequence[signal.Signals] = (),
    ) -> None:
        self.screen = Screen(columns, 24)
        self.raw = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        report, write_end = os.pipe()
        self._leader = subprocess.Popen(
            [sys.executable, "-ISc", _LEADER, str(write_end), json.dumps(list(map(int, ignored))), *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environ, "TERM": term},
            start_new_session=True,
            pass_fds=[write_end],
        )
        os.close(slave)
        os.close(write_end)
        self._report = os.fdopen(report, "rb")
        self.pid = int(self._report.readline())

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return self.screen.text

    def press(self, keys: str | bytes) -> None:
        """Press these keys."""
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self._master, data[:512]) :]
            self._read(0)

    def paste(self, text: str) -> None:
        """Paste as terminals do that were asked to bracket it; newlines arrive as Enter would."""
        self.press("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def wait_for(self, wanted: str | Callable[[str], bool]) -> None:
        """Wait until the screen ends in `wanted` (blanks at its end do not count), or until `wanted` holds for it."""
        holds = wanted if callable(wanted) else lambda text: text.endswith(wanted.rstrip())
        deadline = time.monotonic() + PATIENCE
        while not holds(self.text):
            assert time.monotonic() < deadline, f"waited too long, and the screen is:\n{self.text}"
            assert self._read(0.05) or self._leader.poll() is None or holds(self.text), f"it ended:\n{self.text}"

    def wait_for_end(self) -> None:
        """Wait until the program has ended, and show the rest."""
        deadline = time.monotonic() + PATIENCE
        while self._leader.poll() is None:
            assert time.monotonic() < deadline, f"it does not end, and the screen is:\n{self.text}"
            self._read(0.02)
        while self._read(0):
            pass
        self.status, self.restored = json.loads(self._report.read())

    def hang_up(self) -> None:
        """Close the terminal's window."""
        os.close(self._master)
        self._master = -1

    def _read(self, seconds: float) -> bool:
        if self._master < 0 or not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.raw += data
        self.screen.feed(self._decoder.decode(data))
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not kind:
                self.wait_for_end()
        finally:
            if self._leader.poll() is None:
                os.kill(self.pid, signal.SIGKILL)
                self._leader.wait()
            self._report.close()
            if self._master >= 0:
                os.close(self._master)
