"""The last questions of a session file, for the line editor of `chat`."""

from collections import deque
from collections.abc import Iterable

import orjson

from mino.journal.scan import split

QUESTIONS = 1000
CHARACTERS = 10_000_000  # of all together: a question can be as long as a book


def last_questions(chunks: Iterable[bytes], number: int = QUESTIONS, characters: int = CHARACTERS) -> list[str]:
    """The texts of the last `number` questions in `chunks`, oldest first; fewer if they have more `characters`.

    The file has been loaded, so nothing is judged again: that takes most of the time of loading.
    """
    kept: deque[str] = deque()
    held = 0
    for lines, _, _ in split(chunks):
        for line in lines:
            # In a text its quotes are escaped, so that few other records are parsed.
            text = _question(line) if b'"user_message"' in line else None
            if text is None:
                continue
            kept.append(text)
            held += len(text)
            while len(kept) > number or held > characters:
                held -= len(kept.popleft())
    return list(kept)


def _question(line: bytes) -> str | None:
    try:
        record = orjson.loads(line)
    except ValueError:  # the loader takes numbers that orjson does not
        return None
    return record["text"] if record["type"] == "user_message" else None
