"""The sessions of Eino: a header, then a message a line."""

import json

import pytest

from mino.errors import InvalidData
from mino.formats.eino import read

MESSAGES = [{"role": "user", "content": "说一种颜色。"}, {"role": "assistant", "content": "蓝色 🔵"}]
LINES = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in MESSAGES)
HEADER = '{"type":"session","id":"x","created_at":"2026-03-24T10:00:00Z"}\n'


@pytest.mark.parametrize(
    "text", [HEADER + LINES, "\n" + HEADER + "\n\n" + LINES, "\ufeff" + HEADER + LINES.rstrip("\n")]
)
def test_every_shape(text: str) -> None:
    imported = read(text.encode(), "f")
    assert imported.turns == [("说一种颜色。", "蓝色 🔵")]
    assert imported.left_out == []


def test_a_broken_line_ends_its_pair() -> None:
    text = HEADER + '{"role":"user","content":"1"}\n{"role":"assistant","con\n{"role":"assistant","content":"2"}\n'
    imported = read(text.encode(), "f")
    assert imported.turns == []
    assert imported.left_out == [
        "line 2: left out a question without an answer",
        "line 3: left out a line that is not JSON",
        "line 4: left out an answer without a question before it",
    ]


@pytest.mark.parametrize("line", ["[" * 100_000, "1" * 5000], ids=["nesting", "digits"])
def test_a_line_beyond_what_python_reads_is_broken(line: str) -> None:
    imported = read((HEADER + line + "\n" + LINES).encode(), "f")
    assert imported.turns == [("说一种颜色。", "蓝色 🔵")]
    assert imported.left_out == ["line 2: left out a line that is not JSON"]


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"", "line 1 (byte 0 of the line) is not JSON"),
        (b"{]\n", "line 1 (byte 1 of the line) is not JSON"),
        (LINES.encode(), "line 1: found {"),
        (b"\n\n[]\n" + LINES.encode(), "line 3: found [], expected a header"),
        (HEADER.encode() + b"\xff", "is not UTF-8: 0xff at byte 64 (line 2)"),
    ],
)
def test_a_file_of_another_kind_is_refused(data: bytes, where: str) -> None:
    with pytest.raises(InvalidData) as caught:
        read(data, "f")
    assert where in caught.value.message
    assert caught.value.message.startswith("'f' ")
