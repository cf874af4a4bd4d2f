"""Files as parts of a question, and the line that a person reads for each."""

import base64
from typing import Any

import pytest

from mino.errors import InvalidData
from mino.responses.parts import describe, file_parts, format_size, text_part, without_files

PNG = b"\x89PNG\r\n\x1a\n" + bytes(992)
QUESTION = text_part("什么?")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe1", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a\0", "image/gif"),
        (b"RIFF\n\0\0\0WEBPVP8L", "image/webp"),
    ],
)
def test_a_picture_goes_after_its_name(data: bytes, kind: str) -> None:
    name, picture = file_parts("计划 🗺.txt", data)
    assert name == text_part("计划 🗺.txt:\n")
    encoded = base64.b64encode(data).decode()
    assert picture == {"type": "input_image", "image_url": f"data:{kind};base64,{encoded}", "detail": "auto"}


def test_a_pdf_and_a_text() -> None:
    [pdf] = file_parts("a.png", b"%PDF-1.4\n\xff")
    assert (pdf["type"], pdf["filename"]) == ("input_file", "a.png")
    assert pdf["file_data"] == "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.4\n\xff").decode()
    assert file_parts("信.md", "\ufeff你好\r\n".encode()) == [text_part("信.md:\n你好\r\n")]
    assert file_parts("x", b"a\x1b[31m") == [text_part("x:\na\x1b[31m\n")]  # the text is the user's own


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"PK\3\4...", "a ZIP archive"),
        (b"\x7fELF\2", "a program"),
        (b"\x1f\x8b\x08", "a gzip archive"),
        (b"\0\0\0\x18ftypheic", "HEIC"),
        (b"RIFF\0\0\0\0WAVEfmt ", "a sound"),
        (b"\x89PNG", "the byte 0x89 at byte 0 is not UTF-8"),
        (b"ab\0", "a NUL at byte 2"),
        ("é".encode("latin-1"), "not UTF-8"),
    ],
)
def test_anything_else_is_refused_for_what_it_is(data: bytes, said: str) -> None:
    with pytest.raises(InvalidData) as caught:
        file_parts("x\n\x1b[2J.png", data)
    assert said in caught.value.message and "'x \\x1b[2J.png'" in caught.value.message


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("a\nb", "a b"),
        ("\udcff.txt", "\ufffd.txt"),
        ("x" * 300, "x" * 79 + "…"),
        ("<script>", "<script>"),
    ],
)
def test_a_name_makes_nothing_do_anything(name: str, clean: str) -> None:
    assert file_parts(name, b"t") == [text_part(f"{clean}:\nt\n")]


def test_each_file_is_described_by_a_line() -> None:
    parts = [
        *file_parts("a.png", PNG),
        *file_parts("信.md", "你好".encode()),
        *file_parts("b.png", PNG),
        *file_parts("p.pdf", b"%PDF-" + bytes(1_234_000)),
        QUESTION,
    ]
    assert list(describe(parts)) == [
        "[picture a.png, 1 kB]",
        "[text 信.md, 7 bytes]",
        "[picture b.png, 1 kB]",
        "[PDF p.pdf, 1.2 MB]",
    ]
    assert list(describe([QUESTION])) == list(describe([])) == []


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"type": "input_image", "image_url": "https://example.com/x.png"}, "[picture https://example.com/x.png]"),
        ({"type": "input_image", "file_id": "file_1"}, "[picture]"),
        ({"type": "input_image", "image_url": {"url": 5}}, "[picture]"),
        ({"type": "input_file", "filename": "a\x1b.pdf", "file_data": None}, "[PDF a\\x1b.pdf]"),
        ({"type": "input_file", "file_data": "data:text/csv;base64,YQ=="}, "[file, 1 byte]"),
        ({"type": "input_audio", "x": 1}, "[input_audio]"),
        ({"type": "a\nb"}, "[a b]"),
        ({"type": "input_text", "text": 5}, "[input_text]"),
    ],
)
def test_parts_of_any_shape_are_described(part: dict[str, Any], line: str) -> None:
    assert list(describe([part, QUESTION])) == [line]
    if part["type"] != "input_text":
        [told, question] = without_files([part, QUESTION])
        assert told["type"] == "input_text" and question == QUESTION


def test_a_question_without_files_keeps_its_texts() -> None:
    parts = [*file_parts("a.png", PNG), *file_parts("信.md", b"x"), QUESTION]
    texts = ["a.png:\n", "[picture, 1 kB]", "信.md:\nx\n", "什么?"]
    assert without_files(parts) == [text_part(text) for text in texts]


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (34_499, "34 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (20_000_000, "20.0 MB"),
    ],
)
def test_sizes_for_people(size: int, shown: str) -> None:
    assert format_size(size) == shown
