"""The text of a file of another program: UTF-8, lines and JSON, with the place of an error. No I/O."""

import json
from collections.abc import Iterator
from typing import Any

from mino.errors import InvalidData
from mino.text import BYTE_ORDER_MARK, json_flaw, shell_word


def decode(data: bytes, file: str) -> str:
    """The text of `file` with the content `data`. Raises InvalidData, naming line and byte, if it is not UTF-8."""
    try:
        return data.decode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"{data[error.start]:#04x} at byte {error.start} (line {line})"
        hint = f"convert it: iconv -f ENCODING -t UTF-8 {shell_word(file)}"
        raise InvalidData(f"'{file}' is not UTF-8: {found}", hint) from None


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line of `text` that is not blank, with its number from 1."""
    for line, each in enumerate(text.split("\n"), 1):
        if each.strip():
            yield line, each


def parse(text: str, file: str, line: int = 1) -> Any:
    """The JSON value of `text`, which begins at `line` of `file`. Raises InvalidData, naming line and byte."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        byte = len(text[: error.pos].encode()) - len(text[: error.pos - error.colno + 1].encode())
        where = f"line {line + error.lineno - 1} (byte {byte} of the line)"
        raise InvalidData(f"'{file}' {where} is not JSON: {json_flaw(error)}") from None
    except (ValueError, RecursionError):
        raise InvalidData(
            f"'{file}' line {line} is JSON beyond what Mino reads: huge numbers or deep nesting"
        ) from None
