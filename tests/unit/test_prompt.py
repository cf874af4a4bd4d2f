"""Bytes → the text of a question."""

import pytest

from mino.errors import InvalidData
from mino.prompt import to_text


def test_text_is_what_it_was() -> None:
    text = "你好 🐕\r\n\u2028\x1b[1m\t"
    assert to_text(text.encode()) == text


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        (b"\xff", "0xff at byte 0"),
        ("好".encode() + b"\xe5\xa5", "0xe5 at byte 3"),
        (b"a\xed\xa0\xbd", "0xed at byte 1"),  # half of a surrogate pair is no character (RFC 3629 section 3)
        ("好".encode() + b"\0", "NUL at byte 3"),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(prompt: bytes, found: str) -> None:
    with pytest.raises(InvalidData, match=found):
        to_text(prompt)
