"""Titles, and how wide they are."""

import os
import time
from datetime import UTC, datetime

import pytest

from mino.commands.session import width
from mino.commands.show import local_time
from mino.journal.saved import file_time
from mino.listing import make_title


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("", ""),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 40 + "…"),
        ("长" * 40, "长" * 40),
        ("长" * 41, "长" * 40 + "…"),  # characters, not bytes
        ("🙂" * 41, "🙂" * 40 + "…"),
        ("two\n lines\tand \u2028 more ", "two lines and more"),
        (" " * 1000 + "late", "late"),
    ],
)
def test_a_title_is_one_line_of_at_most_forty_characters(question: str, title: str) -> None:
    assert make_title(question) == title


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("中文", 4), ("🙂", 2), ("e\u0301", 1), ("ｶ", 1), ("", 0), ("a\u200b", 1)]
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize("seconds", [-1e11, 0.0, 1.7e9, 253_402_300_800.0, 1e18])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_a_file_may_have_any_time(monkeypatch: pytest.MonkeyPatch, seconds: float, zone: str) -> None:
    """A backup or a broken clock made a file of the year 10000, and the list ended in a traceback."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        kept = file_time(os.stat_result((0o600, 0, 0, 1, 0, 0, 0, 0, seconds, 0)))
        assert kept == seconds or seconds in (-1e11, 253_402_300_800.0, 1e18)
        assert local_time(datetime.fromtimestamp(kept, UTC))[4] == "-"
    finally:
        monkeypatch.undo()
        time.tzset()
