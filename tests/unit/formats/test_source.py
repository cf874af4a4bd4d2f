"""The text of a foreign file: UTF-8, lines, JSON, and the place of what is wrong in it."""

import pytest

from mino.errors import InvalidData
from mino.formats.source import decode, lines, parse
from mino.text import shell_word


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"\xef\xbb\xbf[\xff]", "is not UTF-8: 0xff at byte 4 (line 1)"),
        ("[]".encode("utf-16"), "is not UTF-8: 0xff at byte 0 (line 1)"),
        ("法国\n\n🔵".encode()[:-1], "is not UTF-8: 0xf0 at byte 8 (line 3)"),
    ],
)
def test_what_is_not_utf_8_is_refused_with_its_place(data: bytes, where: str) -> None:
    with pytest.raises(InvalidData) as caught:
        decode(data, "a 'b'")
    assert caught.value.message == f"'a 'b'' {where}"
    assert caught.value.hint == "convert it: iconv -f ENCODING -t UTF-8 " + shell_word("a 'b'")


def test_a_byte_order_mark_is_dropped_at_the_beginning_alone() -> None:
    assert decode("\ufeff法国 \ufeff🔵".encode(), "f") == "法国 \ufeff🔵"
    assert decode(b"", "f") == ""


def test_a_line_has_its_number_unless_it_is_blank() -> None:
    assert list(lines("\n一\r\n \t\r\nb\u2028c\n\n{}")) == [(2, "一\r"), (4, "b\u2028c"), (6, "{}")]
    assert list(lines("")) == list(lines("\n \n")) == []


@pytest.mark.parametrize(
    ("text", "line", "where"),
    [
        ("", 1, "line 1 (byte 0 of the line) is not JSON: expecting value"),
        ('{"角色":1,x}', 7, "line 7 (byte 12 of the line) is not JSON: expecting property name"),
        ('[\n"🔵",\n "法" "国"]', 1, "line 3 (byte 7 of the line) is not JSON: expecting ',' delimiter"),
        ('[\n"🔵",\n "法" "国"]', 5, "line 7 (byte 7 of the line) is not JSON: expecting ',' delimiter"),
        ("[" * 100_000, 1, "line 1 is JSON beyond what Mino reads: huge numbers or deep nesting"),
        ("1" * 5000, 2, "line 2 is JSON beyond what Mino reads: huge numbers or deep nesting"),
    ],
    ids=["nothing", "a line", "lines", "lines from 5", "nesting", "digits"],
)
def test_what_is_not_json_is_refused_with_its_place(text: str, line: int, where: str) -> None:
    with pytest.raises(InvalidData) as caught:
        parse(text, "f", line)
    assert caught.value.message.startswith(f"'f' {where}")


def test_what_is_json_keeps_its_value() -> None:
    assert parse(' {"角色": ["🔵", 1, 1.5, null, "\\ud83d"]}\r', "f") == {"角色": ["🔵", 1, 1.5, None, "\ud83d"]}
