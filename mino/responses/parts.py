"""The content parts of a question: files as they are sent, and the line that a person reads for one. No I/O.

A picture has a text part with its name before it, a text file its name in its first line; the text of the question
comes last. What a file is, its bytes say, and not its name.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from mino.errors import InvalidData
from mino.text import BYTE_ORDER_MARK, count, one_line, whole_characters

Part = dict[str, Any]

# What a file begins with; `.` is any byte. (No regular expressions: they would be compiled for each question.)
_PICTURES = (
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF87a"),
    ("image/gif", b"GIF89a"),
    ("image/webp", b"RIFF....WEBP"),
)
_OTHERS = (
    ("a ZIP archive, or an office document", b"PK\3\4"),
    ("a gzip archive", b"\x1f\x8b"),
    ("a TIFF picture", b"II*\0"),
    ("a TIFF picture", b"MM\0*"),
    ("a BMP picture", b"BM....\0\0\0\0"),
    ("a HEIC or AVIF picture, or a video", b"....ftyp"),
    ("a sound or a video", b"RIFF"),
    ("a sound or a video", b"OggS"),
    ("a sound or a video", b"ID3"),
    ("a sound or a video", b"fLaC"),
    ("a sound or a video", b"\x1aE\xdf\xa3"),
    ("a program", b"\x7fELF"),
    ("a program", b"MZ"),
    ("a program", b"\xcf\xfa\xed\xfe"),
)
_NAME = 80  # characters


def text_part(text: str) -> Part:
    """A part that is text."""
    return {"type": "input_text", "text": text}


def file_parts(name: str, data: bytes) -> list[Part]:
    """The parts of the file `name` with the content `data`: a picture, a PDF, or text.

    Raises InvalidData for anything else, and says what it looks like.
    """
    name = clean_name(name)
    for kind, magic in _PICTURES:
        if _begins(data, magic):
            return [
                text_part(f"{name}:\n"),
                {"type": "input_image", "image_url": _data_url(kind, data), "detail": "auto"},
            ]
    if data.startswith(b"%PDF-"):
        return [{"type": "input_file", "filename": name, "file_data": _data_url("application/pdf", data)}]
    text = _text(name, data)
    # Some gateways join the parts of a question as they are.
    return [text_part(f"{name}:\n{text}" + "\n" * (not text.endswith("\n")))]


def _begins(data: bytes, magic: bytes) -> bool:
    start = data[: len(magic)]
    return len(start) == len(magic) and all(one in (byte, 0x2E) for byte, one in zip(start, magic, strict=True))


def clean_name(name: str) -> str:
    """A file's `name` in one line, in which nothing makes a terminal or a browser do anything."""
    return one_line(whole_characters(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")), _NAME)


def _data_url(kind: str, data: bytes) -> str:
    from base64 import b64encode

    return f"data:{kind};base64,{b64encode(data).decode()}"


def _text(name: str, data: bytes) -> str:
    if not data:
        raise InvalidData(f"'{name}' is empty")
    why = next((what for what, magic in _OTHERS if _begins(data, magic)), "")
    try:
        text = data.decode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        why = why or f"the byte {data[error.start]:#04x} at byte {error.start} is not UTF-8"
        text = ""
    if "\0" in text:
        why = why or f"there is a NUL at byte {data.index(0)}"
    if why:
        raise InvalidData(
            f"'{name}' is neither a picture (PNG, JPEG, WebP, GIF) nor a PDF nor text: {why}", "convert it first"
        )
    return text


def describe(parts: Sequence[Part]) -> Iterator[str]:
    """A line for each file in the `parts` of a question, as `[picture plan.png, 34 kB]`; the last part is its text."""
    name = ""
    for number, part in enumerate(parts):
        kind, text = part.get("type"), part.get("text")
        if kind == "input_text" and isinstance(text, str):
            following = parts[number + 1].get("type") if number + 1 < len(parts) else None
            if following == "input_image":
                name = text.removesuffix(":\n")
            elif following is not None:
                title, _, content = text.partition("\n")
                yield _line("text", title.removesuffix(":"), len(content.encode("utf-8", "replace")))
            continue
        yield _describe(part, name)
        name = ""


def without_files(parts: Sequence[Part]) -> list[Part]:
    """`parts` with the line that describes it in the place of each picture and PDF; text files stay."""
    return [part if part.get("type") == "input_text" else text_part(_describe(part, "")) for part in parts]


def _describe(part: Part, name: str) -> str:
    kind = part.get("type")
    data = part.get("image_url") if kind == "input_image" else part.get("file_data")
    if kind == "input_file":
        name = str(part.get("filename") or "")
    word = {"input_image": "picture", "input_file": "PDF"}.get(str(kind), str(kind))
    if not isinstance(data, str):
        return _line(word, name, None)
    head, comma, encoded = data.partition(";base64,")
    if not comma:  # an address
        return _line(word, name or data, None)
    if kind == "input_file" and head != "data:application/pdf":
        word = "file"
    return _line(word, name, len(encoded) * 3 // 4 - encoded[-2:].count("="))


def _line(word: str, name: str, size: int | None) -> str:
    named = f"{one_line(word, 40)} {one_line(name, _NAME)}".rstrip()
    return f"[{named}]" if size is None else f"[{named}, {format_size(size)}]"


def format_size(size: int) -> str:
    """`size` in bytes for people: `812 bytes`, `34 kB`, `1.2 MB`; a kilobyte is 1,000 bytes."""
    if size < 1000:
        return count(size, "byte")
    return f"{(size + 500) // 1000} kB" if size < 999_500 else f"{size / 1_000_000:.1f} MB"
