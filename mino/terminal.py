"""stdout and stderr: answers byte for byte, notices, and control characters made visible.

stdout carries answers and what a command was asked to print, nothing else. Every line on stderr begins with
`mino: ` or `hint: `. Text goes out unbuffered, by `os.write`, so that a pipe gets each delta as it arrives and no
buffer is left to fail at exit.
"""

import os
import select
from collections.abc import Iterable
from contextlib import suppress

from mino import signals
from mino.errors import MinoError, ReaderGone, StorageFailed, shell_word

STDOUT = 1
STDERR = 2

# C0 without tab and newline, DEL, C1, and the bidirectional controls (Unicode TR 36: they reorder what a person reads).
_HIDDEN = [
    *(code for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)),
    *(0x061C, 0x200E, 0x200F),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]
_VISIBLE = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _HIDDEN}
_ESCAPED = {code: f"\\u{code:04x}" for code in _HIDDEN}  # JSON's own form (RFC 8259 section 7)
# A file name may hold a newline, and every line on stderr has its prefix; and bytes that are not UTF-8 (PEP 383).
_TOLD = {**_VISIBLE, 0x0A: "\\x0a", **{0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}}
_ONE_LINE = {**_VISIBLE, 0x09: " ", 0x0A: " ", 0x2028: " ", 0x2029: " "}


def visible(text: str) -> str:
    """`text` with control characters as `\\x1b`, so that a terminal shows them and does not obey them."""
    return text.translate(_VISIBLE)


def one_line(text: str, limit: int = 200) -> str:
    """`text` as one clean line of at most `limit` characters, for a message that quotes what somebody else wrote."""
    line = " ".join(text.translate(_ONE_LINE).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def is_terminal(fd: int) -> bool:
    """Whether a person sees `fd`; a closed one is no terminal."""
    try:
        return os.isatty(fd)
    except OSError:
        return False


def show(text: str) -> None:
    """Write `text` to stdout now; on a terminal its control characters are visible, in a pipe the bytes are exact.

    Raises ReaderGone when the reader closed the pipe, StorageFailed when stdout cannot be written.
    """
    _write(STDOUT, (visible(text) if is_terminal(STDOUT) else text).encode("utf-8", "replace"))


def is_stuck() -> bool:
    """Whether a signal is to end the process and stdout's reader takes nothing more: a newline would wait for it."""
    return signals.is_pending() and not select.select([], [STDOUT], [], 0)[1]


def show_lines(lines: Iterable[str]) -> None:
    """Write `lines` to stdout, each with a newline. Raises as `show` does."""
    for line in lines:
        show(line + "\n")


def write_json(value: object) -> str:
    """`value` as one line of JSON; with control characters as `\\u` escapes, so that a terminal can be shown it."""
    import json

    line = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
    return line.translate(_ESCAPED) if is_terminal(STDOUT) else line


def count(number: int, noun: str) -> str:
    """`number` of what `noun` names, which takes an `s` for all numbers but one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def show_json(value: object) -> None:
    """Write `value` to stdout as one line of JSON. Raises as `show` does."""
    show(write_json(value))


def draw(text: str, columns: int) -> int:
    """Show `text` on the current line of stderr, over the `columns` of what stood there; the columns it takes."""
    line = _cut("mino: " + text.translate(_TOLD)) if text else ""
    blanks = " " * max(0, columns - len(line))
    with suppress(ReaderGone, StorageFailed):
        _write(STDERR, f"\r{line}{blanks}\r{line}".encode("utf-8", "replace"))
    return len(line)


def _cut(line: str) -> str:
    """`line` in the width of the terminal: one that wraps cannot be drawn over."""
    try:
        width = os.get_terminal_size(STDERR).columns or 80
    except OSError:
        width = 80
    return line if len(line) < width else "…" + line[len(line) - width + 2 :]


_waiting = 0  # the columns of what `show_waiting` wrote, while it stands there


def show_waiting(text: str) -> None:
    """Show ASCII `text` on the current line until anything else is written; only a terminal gets it."""
    global _waiting
    if is_terminal(STDOUT):
        _waiting = len(text)  # before it is shown: a signal that comes right after would leave it there
        _send(STDOUT, text.encode())


def clear_waiting() -> None:
    """Take away what `show_waiting` wrote. Blanks, not an escape sequence: every terminal knows them."""
    global _waiting
    if _waiting:
        _send(STDOUT, b"\r" + b" " * _waiting + b"\r")
        _waiting = 0


class AnswerStream:
    """stdout while one answer arrives: a pipe that breaks ends it, a disk that is full does not.

    `label` stands before its first piece. `failure` is set where stdout cannot be written: the turn is still finished
    and saved (spec section 7, step 6).
    """

    def __init__(self, label: str = "") -> None:
        self.failure: StorageFailed | None = None
        self._label = label
        self._last = "\n"

    def show(self, text: str) -> None:
        """Show the next piece of the answer. Raises ReaderGone."""
        if text and not self.failure:
            text, self._label = self._label + text, ""
            self._last = text[-1]  # before it is shown: a signal that comes right after would leave the line open
            try:
                show(text)
            except StorageFailed as failure:
                self.failure = failure

    def end(self) -> None:
        """Add the newline that the answer, or the part of it that came, does not have itself.

        A reader that is gone does not get it, and does not hide what ended the answer: a disk that is full, say.
        """
        with suppress(ReaderGone):
            clear_waiting()
            if self._last != "\n" and not is_stuck():
                self.show("\n")


def notice(sentence: str) -> None:
    """One `mino: ` line on stderr. A stderr that is closed or full loses it: the work goes on."""
    _tell("mino: ", sentence)


_mino = "mino"  # how a hint calls this program


def name_home(home: str | None) -> None:
    """From now on a hint gives its command the `--home` of this one; without it another conversation would be meant."""
    global _mino
    _mino = f"mino --home {shell_word(home)}" if home else "mino"


def hint(command: str) -> None:
    """One `hint: ` line on stderr: what to run next."""
    _tell("hint: ", _mino + command.removeprefix("mino") if command.startswith("mino ") else command)


def tell(failure: MinoError) -> None:
    """The message of `failure`, and its hint if it has one."""
    notice(failure.message)
    if failure.hint:
        hint(failure.hint)


def _tell(prefix: str, text: str) -> None:
    with suppress(ReaderGone, StorageFailed):  # there is nowhere left to say it
        _write(STDERR, (prefix + text.translate(_TOLD) + "\n").encode("utf-8", "replace"))


def _write(fd: int, data: bytes) -> None:
    if _waiting and (fd == STDOUT or is_terminal(fd)):
        clear_waiting()
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
