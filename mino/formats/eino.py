"""The sessions of Eino: JSON Lines, a header `{"type": "session", …}`, and then one message on each line."""

import json
from collections.abc import Iterator

from mino.errors import InvalidData
from mino.formats.pairs import Imported, Message, pair
from mino.formats.source import decode, lines, parse
from mino.text import quote


def read(data: bytes, file: str) -> Imported:
    """The turns of `file` with the content `data`; a broken line is reported and left out.

    Raises InvalidData if the file has no such header.
    """
    return pair(_messages(decode(data, file), file))


def _messages(text: str, file: str) -> Iterator[Message]:
    numbered = lines(text)
    line, first = next(numbered, (1, ""))
    header = parse(first, file, line)
    if not isinstance(header, dict) or header.get("type") != "session":
        expected = 'a header, {"type":"session",…}'
        raise InvalidData(f"'{file}' line {line}: found {quote(header)}, expected {expected}", "use --from messages")
    for line, each in numbered:
        try:
            yield Message(f"line {line}", json.loads(each))
        except (ValueError, RecursionError):
            yield Message(f"line {line}", flaw="a line that is not JSON")
