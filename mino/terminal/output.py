"""stdout and stderr: answers byte for byte, notices and hints.

stdout carries answers and the requested output of a command, and nothing else. Every line on stderr begins with
`mino: ` or `hint: ` (mino(1), MESSAGES). Text goes out unbuffered, by `os.write`, so that a pipe gets each delta as it
arrives and no buffer is left to fail at exit.
"""

import os
import re
import select
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from mino import signals
from mino.errors import MinoError, ReaderGone, StorageFailed
from mino.text import shell_word, visible, visible_json, visible_message, width

STDOUT = 1
STDERR = 2


def keep_stderr() -> None:
    """From now on write to a copy of stderr, so that what a library in C writes there itself goes nowhere."""
    global STDERR
    with suppress(OSError):  # it is closed
        own = os.dup(STDERR)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STDERR)
        os.close(nowhere)
        STDERR = own
        sys.stderr = os.fdopen(own, "w", 1, "utf-8", "backslashreplace", closefd=False)


def is_terminal(fd: int) -> bool:
    """Whether a person sees `fd`; a closed one is not a terminal."""
    try:
        return os.isatty(fd)
    except OSError:
        return False


def is_dumb() -> bool:
    """Whether the terminal, by its name, can do no more than print."""
    return os.environ.get("TERM", "") in ("", "dumb", "unknown")


def show(text: str) -> None:
    """Write `text` to stdout now; on a terminal its control characters are visible, in a pipe the bytes are exact.

    Raises ReaderGone if the reader closed the pipe, StorageFailed if stdout cannot be written.
    """
    write(shown(text))


def shown(text: str) -> str:
    """`text` as `show` writes it."""
    return visible(text) if is_terminal(STDOUT) else text


def head(line: str) -> str:
    """`line` as `shown`, and in colour on a terminal that has colours."""
    return f"\x1b[33m{shown(line)}\x1b[m" if _is_coloured() else shown(line)


def marked(line: str, spans: Iterable[tuple[int, int]]) -> str:
    """`line` as `shown`, with the characters of `spans` in another colour on a terminal that has colours."""
    if not _is_coloured():
        return shown(line)
    pieces, at = [], 0
    for start, end in spans:
        pieces += [shown(line[at:start]), f"\x1b[1;31m{shown(line[start:end])}\x1b[m" if end > start else ""]
        at = end
    return "".join(pieces) + shown(line[at:])


def _is_coloured() -> bool:
    return is_terminal(STDOUT) and not is_dumb() and not os.environ.get("NO_COLOR")  # https://no-color.org


def write(text: str) -> None:
    """Write `text` to stdout as it is. Raises as `show` does."""
    _write(STDOUT, text.encode("utf-8", "replace"))


def is_stuck() -> bool:
    """Whether a signal will end the process and stdout's reader takes nothing more: a newline would wait for it."""
    return signals.is_pending() and not select.select([], [STDOUT], [], 0)[1]


def show_lines(lines: Iterable[str]) -> None:
    """Write `lines` to stdout, each with a newline. Raises as `show` does."""
    for line in lines:
        show(line + "\n")


def format_json(value: object) -> str:
    """`value` as one line of JSON; for a terminal its control characters are `\\u` escapes."""
    import json

    line = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
    return visible_json(line) if is_terminal(STDOUT) else line


def show_json(value: object) -> None:
    """Write `value` to stdout as one line of JSON. Raises as `show` does."""
    show(format_json(value))


_passing = (STDOUT, 0)  # the terminal and the columns of a text that is shown until anything else is written


def draw(text: str) -> None:
    """Show `text` on the current line of stderr, over the last one, until anything else is written to a terminal."""
    global _passing
    columns = _columns(STDERR)
    line = _cut("mino: " + visible_message(text), columns)
    blanks = " " * (min(_passing[1], columns - 1) - width(line))
    _passing = STDERR, width(line)
    with suppress(ReaderGone, StorageFailed):
        _send(STDERR, f"\r{line}{blanks}\r{line}".encode("utf-8", "replace"))


def is_drawn() -> bool:
    """Whether what `draw` or `show_waiting` showed is still there."""
    return _passing[1] > 0


def _columns(fd: int) -> int:
    try:
        return os.get_terminal_size(fd).columns or 80
    except OSError:
        return 80


def _cut(line: str, columns: int) -> str:
    """The end of `line` that leaves a column free, because a line that wraps cannot be drawn over."""
    excess = width(line) - columns + 1
    if excess <= 0:
        return line
    excess += 2  # some terminals show the ellipsis two columns wide
    start = 0
    while excess > 0 and start < len(line):
        excess -= width(line[start])
        start += 1
    return "…" + line[start:]


def show_waiting(text: str) -> None:
    """Show ASCII `text` on the current line until anything else is written; only a terminal gets it."""
    global _passing
    if is_terminal(STDOUT):
        _passing = STDOUT, len(text)  # before it is shown: a signal that comes right after would leave it there
        _send(STDOUT, text.encode())


def clear_passing() -> None:
    """Remove what `draw` or `show_waiting` showed, with blanks, because every terminal knows them."""
    global _passing
    fd, columns = _passing
    if columns:
        _passing = STDOUT, 0
        _send(fd, b"\r" + b" " * min(columns, _columns(fd) - 1) + b"\r")


class Patience(Protocol):
    """What is shown while nothing comes, as `mino.terminal.waiting` has it."""

    def begin(self) -> None: ...
    def take_word(self) -> None: ...
    def end(self) -> None: ...


class AnswerStream:
    """stdout while one answer arrives: a broken pipe ends it, a full disk does not.

    `label` is shown before the first piece, `waiting` while nothing comes. `failure` is set if stdout cannot be
    written: the turn is still finished and saved (mino-ask(1), When it is interrupted).
    """

    def __init__(self, label: str = "", waiting: Patience | None = None) -> None:
        self.failure: StorageFailed | None = None
        self._label = label
        self._waiting = waiting
        self._last = "\n"

    def begin(self) -> None:
        """Show that Mino waits for an answer, if it has a label. Raises ReaderGone and StorageFailed."""
        if self._label:
            show("\n")
            show_waiting(f"{self._label}...")
        if self._waiting:
            self._waiting.begin()

    def show(self, text: str) -> None:
        """Show the next piece of the answer. Raises ReaderGone."""
        if text and not self.failure:
            text, self._label = self._label + text, ""
            if self._waiting:
                self._waiting.take_word()
            self._last = text[-1]  # before it is shown: a signal that comes right after would leave the line open
            try:
                show(text)
            except StorageFailed as failure:
                self.failure = failure

    def end(self) -> None:
        """Add a newline if the answer, or the part of it that arrived, does not end in one.

        A reader that is gone does not get it, and does not hide the failure that ended the answer.
        """
        with suppress(ReaderGone):
            if self._waiting:
                self._waiting.end()
            clear_passing()
            if self._last != "\n" and not is_stuck():
                self.show("\n")


def notice(sentence: str) -> None:
    """Write one `mino: ` line to stderr. If stderr is closed or full, the line is lost and the work continues."""
    _tell("mino: ", sentence)


_home = _session = ""  # the options that the commands of hints need
# A command of Mino's: the group 1 is of one that takes `--session`, and no path. Or a quoted word, which may be a name.
_CALL = re.compile(r"\$'(?:\\.|[^'\\])*'|'[^']*'|\bmino (?=((?:ask|chat|history)\b(?![^;&]*/))|[a-z])")


def name_call(home: str | None, session: str | None) -> None:
    """Add `--home` and `--session` to the commands of later hints, which would otherwise mean another conversation."""
    global _home
    _home = f"--home {shell_word(home)} " if home else ""
    name_session(session)


def name_session(session: str | None) -> None:
    """Let later hints mean the conversation `session`; a chat may go on with another one than it began with."""
    global _session
    _session = f"--session {shell_word(session)} " if session else ""


def hint(command: str) -> None:
    """Write one `hint: ` line to stderr: what to run next."""
    _tell("hint: ", _CALL.sub(_with_options, command))


def _with_options(call: re.Match[str]) -> str:
    if call[0] != "mino ":
        return call[0]
    return "mino " + _home + (_session if call[1] else "")


def show_failure(failure: MinoError) -> None:
    """Write the message of `failure` to stderr, and its hint if it has one."""
    notice(failure.message)
    if failure.hint:
        hint(failure.hint)


def _tell(prefix: str, text: str) -> None:
    with suppress(ReaderGone, StorageFailed):  # there is nowhere left to say it
        _write(STDERR, (prefix + visible_message(text) + "\n").encode("utf-8", "replace"))


def _write(fd: int, data: bytes) -> None:
    if _passing[1] and is_terminal(fd):
        clear_passing()
    _send(fd, data)


def _send(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            # Another program made this terminal or pipe non-blocking; without the wait the rest of the answer is lost.
            select.select([], [fd], [])
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            raise StorageFailed(f"cannot write to {'stdout' if fd == STDOUT else 'stderr'}: {error.strerror}") from None
