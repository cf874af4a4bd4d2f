"""`usage` as servers send it, in words."""

from typing import Any

import pytest

from mino.responses.usage import format_usage


@pytest.mark.parametrize(
    ("usage", "full", "short"),
    [
        (
            {
                "input_tokens": 1234,
                "input_tokens_details": {"cached_tokens": 1000},
                "output_tokens": 56,
                "output_tokens_details": {"reasoning_tokens": 12},
                "total_tokens": 1290,
            },
            "1234 tokens in (1000 cached), 56 out (12 reasoning)",
            "1234 tokens in, 56 out",
        ),
        ({"input_tokens": 1, "output_tokens": 0}, "1 token in, 0 out", "1 token in, 0 out"),
        ({"input_tokens": 5, "input_tokens_details": {"cached_tokens": 0}}, "5 tokens in", "5 tokens in"),
        ({"output_tokens": 7, "output_tokens_details": None}, "7 tokens out", "7 tokens out"),
        ({"input_tokens": 5, "input_tokens_details": [1]}, "5 tokens in", "5 tokens in"),
        (None, "", ""),
        ({}, "", ""),
        ([1], "", ""),
        ("12", "", ""),
        ({"input_tokens": "12"}, "", ""),
        ({"output_tokens": True}, "", ""),
        ({"input_tokens": -1, "output_tokens": 10**400}, "", ""),
        ({"input_tokens": 2.5, "output_tokens": 3}, "3 tokens out", "3 tokens out"),
    ],
)
def test_the_numbers_that_are_there_are_shown(usage: Any, full: str, short: str) -> None:
    assert format_usage(usage) == full
    assert format_usage(usage, in_full=False) == short
