"""Text for people: nothing in it is obeyed by a terminal, a line is one line, and what is quoted is short."""

import json
import os
import re
import shutil
import subprocess
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mino.text import (
    count,
    local_time,
    one_line,
    quote,
    rfc3339,
    shell_word,
    visible,
    visible_json,
    visible_message,
    whole_characters,
    width,
)

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\x00\r\u202eabc\u2066\u200f"
CONTROLS = [
    *(*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F),
    *(*range(0x202A, 0x202F), *range(0x2066, 0x206A)),
]
HARMLESS = ("naïve café", "你好，世界", "😀👩‍👩‍👧", "a\u00a0b", "שלום", "\ufffd", "")


def test_every_control_character_is_made_visible() -> None:
    for code in CONTROLS:
        character = chr(code)
        assert visible(character) == character if character in "\t\n" else visible(character).isascii()
    for text in HARMLESS:
        assert visible(text) == text
    shown = "\\x1b]0;title\\x07\\x1b[2J\\u009b31m\\x7f\\x00\\x0d\\u202eabc\\u2066\\u200f"
    assert visible("你好 😀\n\t" + HOSTILE) == "你好 😀\n\t" + shown


def test_json_with_visible_control_characters_has_the_same_value() -> None:
    for value in ("".join(map(chr, CONTROLS)), HOSTILE, *HARMLESS):
        line = visible_json(json.dumps({"text": value}, ensure_ascii=False))
        assert json.loads(line) == {"text": value}
        assert visible(line) == line and "\n" not in line
    assert visible_json('{"a":"你\x9b\u202e"}') == '{"a":"你\\u009b\\u202e"}'
    for value in HARMLESS:
        assert visible_json(value) == value


def test_a_message_is_one_line_whatever_a_file_is_called() -> None:
    assert visible_message("cannot open 'a\nb\x1b[2J'") == "cannot open 'a\\x0ab\\x1b[2J'"
    assert visible_message(os.fsdecode(b"caf\xe9 \x80\xff")) == "caf\\xe9 \\x80\\xff"
    for text in HARMLESS:
        assert visible_message(text) == text
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", visible_message("".join(map(chr, CONTROLS))))


def test_one_line_is_one_clean_line() -> None:
    assert one_line("  a\n\tb\u2028c \x1b[2J ") == "a b c \\x1b[2J"
    assert one_line("法" * 500) == "法" * 199 + "…"
    assert one_line("法" * 200) == "法" * 200
    assert one_line("two\u2029lines 🙂", 6) == "two l…"


@pytest.mark.parametrize(
    ("number", "phrase"),
    [(0, "0 turns"), (1, "1 turn"), (2, "2 turns"), (-1, "-1 turns"), (10**6, "1000000 turns")],
)
def test_a_number_and_its_noun(number: int, phrase: str) -> None:
    assert count(number, "turn") == phrase


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("中文", 4), ("🙂", 2), ("e\u0301", 1), ("ｶ", 1), ("Ａ", 2), ("", 0), ("a\u200b", 1), ("a\u20dd", 1)],
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "''"),
        ("a b", "'a b'"),
        ("it's", "'it'\\''s'"),
        ('$HOME `id` "*" \\', "'$HOME `id` \"*\" \\'"),
        ("巴黎 😀", "'巴黎 😀'"),
        ("--help", "'--help'"),
        ("a\nb", "$'a\nb'"),
        ("a\n'\\", "$'a\n\\'\\\\'"),
    ],
)
def test_a_shell_word(text: str, word: str) -> None:
    assert shell_word(text) == word


@pytest.mark.parametrize(
    "name",
    [
        *("a b", "it's", '$HOME `id` "*" \\', "巴黎 😀", "''", "-n", "!x", "~", "a\\nb", "\\"),
        *("a\x9bb", "a\x85b", "\u202eb"),
        *("a\nb", "tab\there", "\x1b[2J'\\", "巴\n黎 '😀'", "\x7f$HOME", os.fsdecode(b"caf\xe9 \xff")),
    ],
)
def test_a_shell_word_that_is_shown_and_pasted_is_the_name(name: str) -> None:
    """A name that can be printed is a word of any shell; for any other bash or zsh is needed."""
    shown = visible_message(shell_word(name))
    assert "\n" not in shown and shown.encode()
    shell = "sh" if name.isprintable() else "bash"
    if not shutil.which(shell):
        pytest.skip("there is no bash")
    command, environ = [shell, "-c", f"printf %s {shown}"], {"LC_ALL": "C.UTF-8", "PATH": os.defpath}
    pasted = subprocess.run(command, env=environ, capture_output=True, check=True).stdout
    assert pasted == os.fsencode(name)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2026-12-31 23:59:59"),
        ("Asia/Shanghai", "2027-01-01 07:59:59"),
        ("Asia/Kathmandu", "2027-01-01 05:44:59"),
        ("America/New_York", "2026-12-31 18:59:59"),
    ],
)
def test_a_time_is_shown_in_the_time_zone_of_the_user(monkeypatch: pytest.MonkeyPatch, zone: str, shown: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        made = datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        assert local_time(made) == local_time(made.astimezone(timezone(timedelta(hours=-7)))) == shown
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("seconds", [0.0, 1.7e9, 253_402_128_000.0])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_any_time_of_a_file_can_be_shown(monkeypatch: pytest.MonkeyPatch, seconds: float, zone: str) -> None:
    """A backup or a broken clock made a file of the year 10000, and the list ended in a traceback."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert local_time(datetime.fromtimestamp(seconds, UTC))[4] == "-"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("microseconds", "shown"),
    [(0, "05.000Z"), (999, "05.000Z"), (1000, "05.001Z"), (20_000, "05.020Z"), (999_999, "05.999Z")],
)
def test_a_time_by_rfc_3339_is_cut_to_the_millisecond(microseconds: int, shown: str) -> None:
    made = datetime(2026, 3, 4, 1, 2, 5, microseconds, tzinfo=UTC)
    assert rfc3339(made) == "2026-03-04T01:02:" + shown
    assert rfc3339(None) is None


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text(st.characters(categories=["L", "Cs"]) | st.sampled_from("\ud83d\ude00😀\ufeff")))
def test_halves_are_joined_and_lone_ones_replaced(text: str) -> None:
    expected = re.sub(
        "([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]",
        lambda found: (
            chr(0x10000 + (ord(found[1]) - 0xD800) * 0x400 + ord(found[2]) - 0xDC00) if found[1] else "\ufffd"
        ),
        text,
    )
    assert whole_characters(text) == expected
    expected.encode()


def test_a_byte_order_mark_is_a_character_like_any_other() -> None:
    for text in ("\ufeff巴黎", "\ufeff\ud83d", "\ufeff", "a\ufeff\ude00"):
        assert whole_characters(text) == re.sub("[\ud83d\ude00]", "\ufffd", text)


def test_a_quote_is_short_and_can_be_encoded() -> None:
    assert quote("巴黎") == '"巴黎"'
    assert quote("a\nb") == r'"a\nb"'
    assert len(quote("x" * 10_000_000)) == 60
    assert quote({"a": "\ud83d"}).encode()
    assert quote("😀" * 58) == '"' + "😀" * 58 + '"'
    assert quote("😀" * 59) == '"' + "😀" * 58 + "…"
