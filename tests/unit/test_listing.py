"""Titles, and how wide they are."""

import pytest

from mino.commands.session import width
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
