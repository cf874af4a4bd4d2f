"""Text for people: control characters made visible, one line, columns, plurals, times, shell words, surrogates."""

import time
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from json import JSONDecodeError

LAST_TIME = 253_402_128_000.0  # 30 December 9999, which no time zone moves into the year 10000

BYTE_ORDER_MARK = "\ufeff"  # what Windows programs begin a file with; it is no part of the text

Tell = Callable[[str], None]
"""Takes one sentence for the person who runs the command; the caller does not know how it is shown."""


def say_nothing(sentence: str) -> None:
    """A `Tell` for what has been reported already."""


# C0 without tab and newline, DEL, C1, and the bidirectional controls (Unicode TR 36: they reorder what a person reads).
_CONTROLS = [
    *(code for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)),
    *(0x061C, 0x200E, 0x200F),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]
# From 0x80 on it is `\u`: within `$'...'` a shell turns that into the character, but `\x9b` into an invalid byte.
_VISIBLE = {code: f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" for code in _CONTROLS}
_ESCAPED = {code: f"\\u{code:04x}" for code in _CONTROLS}  # JSON's own form (RFC 8259 section 7)
# Every line on stderr has a prefix, but a file name may hold a newline, and bytes that are not UTF-8 (PEP 383).
_MESSAGE = {**_VISIBLE, 0x0A: "\\x0a", **{0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}}


def visible(text: str) -> str:
    """`text` with control characters as `\\x1b`, so that a terminal shows them and does not obey them."""
    return text.translate(_VISIBLE)


def visible_json(line: str) -> str:
    """The JSON `line` with control characters as `\\u001b`: the same value, and safe on a terminal."""
    return line.translate(_ESCAPED)


def visible_message(sentence: str) -> str:
    """`sentence` fit for one line of stderr: its newlines are visible too, and bytes that are not UTF-8."""
    return sentence.translate(_MESSAGE)


def one_line(text: str, limit: int = 200) -> str:
    """`text` as one clean line of at most `limit` characters, for a message that quotes what somebody else wrote."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def count(number: int, noun: str) -> str:
    """`number` and `noun`, which gets an `s` unless `number` is 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def width(text: str) -> int:
    """How many columns of a terminal `text` takes (Unicode UAX 11: wide characters take two)."""
    return sum(
        0 if unicodedata.category(character) in ("Mn", "Me", "Cf") else _columns(character) for character in text
    )


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shell_word(text: str) -> str:
    """`text` as one word of a shell command, so that a hint can be pasted whatever a file or a session is called."""
    if text.isprintable():
        return "'" + text.replace("'", "'\\''") + "'"
    # A control character will be shown as `\x0a`, which a shell takes for the character itself within `$'...'`.
    return "$'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def json_flaw(error: "JSONDecodeError") -> str:
    """What the parser says of text that is not JSON, without the end that waits for a place (`… starting at`)."""
    return (error.msg[:1].lower() + error.msg[1:]).rstrip(": ").removesuffix(" at").removesuffix(" starting")


def local_time(moment: "datetime") -> str:
    """`moment` in the user's time zone, to the second."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def now() -> float:
    """What the clock says, in seconds since 1970: `time.time` and `time_ns` fail from the year 2262 on."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def utc_stamp(seconds: float) -> str:
    """`seconds` since 1970 as `20260131T235959Z`, for a name: always 16 characters, whatever a clock says."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(min(max(seconds, 0), LAST_TIME)))


def rfc3339(moment: "datetime | None") -> str | None:
    """`moment`, which is in UTC, by RFC 3339 to the millisecond; None if it is not known."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z" if moment else None


def whole_characters(text: str) -> str:
    """`text` with surrogate halves joined, and U+FFFD for an unpaired half.

    A model can send `"\\ud83d"`; UTF-8 cannot encode it (RFC 3629 section 3), and a record must be UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def quote(value: object) -> str:
    """`value` for a message: as JSON, cut at 60 characters, so that a huge value makes a short sentence."""
    import json

    text = whole_characters(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 60 else text[:59] + "…"
