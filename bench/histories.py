"""Turns made up for the benchmark, and the session files that hold them as Mino writes them.

The text is prose with line breaks and quotation marks, every tenth one Chinese with an emoji. The same number and size
always give the same text, so that every program gets the same history.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

QUESTION, ANSWER = 100, 400  # bytes of text in the histories that are shared with the peers

_ENGLISH = (
    "The capital of France is Paris, and it has been since the tenth century. "
    'People call it the "City of Light"; the name goes back to the lamps of 1667.\n\n'
    "- It lies on the Seine, 233 miles from its mouth.\n- Its twenty districts wind outwards like a snail.\n\n"
    "In winter the days are short and grey, and in summer the evenings are long. "
)
_CHINESE = (
    "法国的首都是巴黎，塞纳河穿城而过。🗼 这座城市的二十个区像蜗牛一样向外盘旋。\n春天的傍晚很长，人们坐在河边读书。"
)


def turns(count: int) -> Iterator[tuple[str, str]]:
    """The first `count` questions and answers."""
    for number in range(count):
        yield text(number, QUESTION), text(number + 50, ANSWER)


@cache
def _pool(size: int) -> list[str]:
    pool = []
    for number in range(100):
        prose = (_CHINESE if number % 10 == 9 else _ENGLISH).encode()
        start = number * 37 % len(prose)
        cut = (prose[start:] + prose * (size // len(prose) + 2))[:size]
        pool.append(cut.decode("utf-8", "ignore"))
    return pool


def text(number: int, size: int) -> str:
    """About `size` bytes of prose; a hundred texts of a size, then the first one again."""
    return _pool(size)[number % 100]


def write_session(
    path: Path, count: int, *, question: int = QUESTION, answer: int = ANSWER, output: bool = True
) -> None:
    """A clean session file of `count` completed turns, with texts of `question` and `answer` bytes.

    A turn has a `user_message`, an `assistant_message` and a `turn_end`; with `output` the answer has the one message
    item that an OpenAI server sends for it, in which its text stands a second time.
    """
    questions = [_dump(text(number, question)) for number in range(100)]
    answers = [_fields(text(number + 50, answer), output) for number in range(100)]
    with path.open("wb") as file:
        for number in range(count):
            # A UUID of version 7 (RFC 9562), a turn every second since the autumn of 2026.
            identifier = b"%012x7%03x8%015x" % (1790000000000 + number * 1000, number & 0xFFF, number * 7919)
            seq = 3 * number + 1
            file.write(
                b'{"v":1,"seq":%d,"type":"user_message","turn_id":"%s","text":%s}\n'
                b'{"v":1,"seq":%d,"type":"assistant_message","turn_id":"%s",%s}\n'
                b'{"v":1,"seq":%d,"type":"turn_end","turn_id":"%s","status":"completed"}\n'
                % (
                    *(seq, identifier, questions[number % 100]),
                    *(seq + 1, identifier, answers[number % 100]),
                    *(seq + 2, identifier),
                )
            )


def write_records(path: Path, size: int, record: int, *, output: bool) -> int:
    """A clean session file of about `size` bytes, whose lines have `record` bytes on average; how many turns it has.

    Question and answer have equally long texts.
    """
    turn = 3 * record
    frame = _turn_bytes(1, output) - (3 if output else 2)
    length = (turn - frame) // (3 if output else 2)
    count = size // turn
    write_session(path, count, question=length, answer=length, output=output)
    return count


def _turn_bytes(length: int, output: bool) -> int:
    """The bytes of a turn with two texts of `length` ASCII letters; seq numbers of six digits."""
    ends = (b'{"v":1,"seq":123456,"type":"user_message","turn_id":"","text":}\n', 32 + length + 2)
    middle = (b'{"v":1,"seq":123456,"type":"assistant_message","turn_id":"",}\n', 32)
    last = (b'{"v":1,"seq":123456,"type":"turn_end","turn_id":"","status":"completed"}\n', 32)
    return sum(len(line) + more for line, more in (ends, middle, last)) + len(_fields("a" * length, output))


def _fields(answer: str, output: bool) -> bytes:
    if not output:
        return b'"text":' + _dump(answer)
    item = {
        "id": "msg_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": answer, "annotations": [], "logprobs": []}],
    }
    return b'"text":%s,"output":[%s]' % (_dump(answer), _dump(item))


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
