"""Splitting at byte 0x0A alone, and the fast path that must judge every line as the explaining path does."""

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest

from mino.journal import scan, schema
from mino.journal.findings import BadLine
from mino.journal.strict import MAX_DEPTH, MAX_DIGITS
from tests.unit.journal.sample import FIRST, answer, end, question, random_chunks

GOOD = [
    question(1, FIRST, '你好 😀 \n \0 \\ " \u2028 \x7f'),
    answer(2, FIRST, "", output=[{"type": "m", "n": [1.5, -0.0, 2**53, 1e16, None, True]}, {"type": "r", "x": [[]]}]),
    end(3, FIRST),
]
# What is put into a good line at a random place: white space, escapes, bad bytes, numbers, second keys.
PIECES = [
    *(b" ", b"\t", b"\r", b"\x0b", b"\x0c", b"\0", b"\x1f", b"\x7f", b"\\", b'"', b",", b":", b"[", b"]", b"{", b"}"),
    *(b"\\u0041", b"\\u00e9", b"\\ud83d", b"\\ud83d\\ude00", b"\\ude00", b"\\/", b"\\x41", b"\\U0041", b"\\u12"),
    *(b"\xef\xbb\xbf", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xa8", b"\xe6"),
    *(b"NaN", b"Infinity", b"-Infinity", b"null", b"true", b"-", b"0", b"00", b"1", b".0", b".5", b"e5", b"1e999"),
    *(b"18446744073709551615", b"18446744073709551616", b"-9223372036854775809", b"9" * 40, b"1e-400", b"5e-324"),
    *(b"100000000000000000000.0", b"0.30000000000000004", b"0.1000000000000000055511151231257827", b"1E+5", b"01"),
    *(b'"v":1,', b'"v":2,', b'"seq":1,', b'"seq":1.0,', b'"type":"m",', b'"at":1,', b'"text":"",', b'"n":1,"n":1,'),
]


def test_lines_end_at_byte_0x0a_alone() -> None:
    data = "a\r\nb\u2028c\u2029d\u0085e\x0bf\x0cg\x1ch\n\n\r\ri".encode()
    whole, torn = list(scan.split([data]))
    assert whole == ([b"a\r", "b\u2028c\u2029d\u0085e\x0bf\x0cg\x1ch".encode(), b""], True, 0)
    assert torn == ([b"\r\ri"], False, 0)


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n", b"a", b"a\n", b"a\nb", b"\na", b"ab\n\ncd\n\n"])
def test_any_chunks_give_the_same_lines(data: bytes) -> None:
    choice = random.Random(1)
    expected = data.split(b"\n")
    bytewise = [data[place : place + 1] for place in range(len(data))]
    for chunks in ([data], bytewise, *(random_chunks(data, choice) for _ in range(50))):
        whole: list[bytes] = []
        torn = b""
        for lines, ended, dropped in scan.split(chunks):
            assert not dropped
            if ended:
                assert not torn
                whole += lines
            else:
                torn = b"".join(lines)
        assert [*whole, torn] == expected


def test_a_line_over_many_chunks_takes_linear_time() -> None:
    """50 MB in chunks of 1 KiB: joining at each chunk would move 1,300 GB."""
    chunk = b"1" * 1024
    [(lines, whole, dropped)] = list(scan.split([chunk] * 50_000 + [b"\n"]))
    assert whole and len(lines[0]) == 50_000 * 1024 and not dropped


RECORD = b'{"v":1,"seq":1,"type":"user_message","turn_id":"","text":"'
RUBBISH = {
    "zeros": [b"\0" * 4096],
    "zeros in a record": [RECORD, b"a" * 4096, b"\0" * 4096],
    "zeros late in a record": [RECORD, *[b"a" * 4096] * 400, b"\0" * 4096],
    "letters": [b"x" * 4096],
    "blanks, then letters": [b" " * 4096, b"\t" * 4096, b"x" * 4096],
    "bytes that are not UTF-8": [RECORD, b"a" * 4096, b"\xe6\xb3", b"a" * 4096],
    "letters, then zeros": [*[b"x" * 4096] * 400, b"\0" * 4096],
    "brackets within what is no JSON": [b"x" * 4096, b"[" * 4096],
}


@pytest.mark.parametrize("end", [b"", b"\n", b"\n{}\n{"])
@pytest.mark.parametrize("pieces", RUBBISH.values(), ids=RUBBISH)
def test_of_a_long_line_that_cannot_be_json_the_beginning_is_held(pieces: list[bytes], end: bytes) -> None:
    """A power cut leaves NUL bytes, as many as the disk has room for: 400 MB of them took 800 MB of memory."""
    chunks = [*pieces, *[pieces[-1]] * 2000]
    size = sum(map(len, chunks))
    first, *others = scan.split([*chunks, end])
    held = b"".join(first.lines)
    assert first.whole is bool(end) and len(held) + first.dropped == size and len(held) < 1_000_000
    # It is judged as the whole line is.
    assert (b"\0" in held) is any(b"\0" in piece for piece in pieces)
    flaws = [scan.explain(line) for line in (held, b"".join(chunks))]
    assert [isinstance(flaw, BadLine) and flaw.code for flaw in flaws] == ["bad-json"] * 2
    assert others == ([([b"{}"], True, 0), ([b"{"], False, 0)] if end.startswith(b"\n{") else [])
    [whole, *_] = scan.split([*chunks, end], hold=True)
    assert b"".join(whole.lines[:1] if end else whole.lines) == b"".join(chunks) and not whole.dropped


@pytest.mark.parametrize("chunk", [b" " * 4096, "法".encode() * 1365 + b"\xe6", b"[" * 4096, b"1" * 4096])
def test_a_long_line_that_may_be_json_is_held(chunk: bytes) -> None:
    chunks = [b'"' if chunk[-1:] == b"\xe6" else b"", *[chunk, b"\xb3\x95" if chunk[-1:] == b"\xe6" else b""] * 600]
    [(lines, whole, dropped)] = scan.split([*chunks, b"\n"])
    assert (b"".join(chunks), True, 0) == (lines[0], whole, dropped)


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """Good lines with one to three random changes."""
    choice = random.Random(seed)
    for _ in range(count):
        line = bytearray(choice.choice(GOOD))
        for _ in range(choice.choice((1, 1, 1, 2, 3))):
            place, kind = choice.randrange(len(line) + 1), choice.random()
            if kind < 0.25:
                line[place : place + 1] = bytes([choice.randrange(256)])
            elif kind < 0.4:
                del line[place : place + choice.randrange(1, 4)]
            elif kind < 0.9:
                line[place:place] = choice.choice(PIECES)
            else:
                other = choice.randrange(len(line) + 1)
                line[place:place] = line[min(place, other) : max(place, other)]
        yield bytes(line).replace(b"\n", b"")


def test_the_fast_path_accepts_nothing_that_the_explaining_path_refuses_or_reads_otherwise() -> None:
    trusted = 0
    for line in mutants(seed=1, count=200_000):
        records = scan._trust([line])
        if records is not None:
            trusted += 1
            # repr, for in it 1, 1.0 and True differ, as do 0.0 and -0.0
            assert repr(scan.explain(line)) == repr(records[0]), line
    assert trusted > 2000


def describe(record: object) -> str:
    return f"{record.code}: {record.message}" if isinstance(record, BadLine) else repr(record)


def test_one_bad_line_in_a_batch_changes_nothing_for_the_others() -> None:
    choice = random.Random(2)
    lines = [*mutants(seed=3, count=500), *(GOOD * 50)]
    choice.shuffle(lines)
    for line, record in zip(lines, scan.read(lines), strict=True):
        assert describe(record) == describe(scan.explain(line))
    assert list(scan.read(GOOD)) == [json.loads(line) for line in GOOD]


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_both_paths_agree_on_a_million_records(part: int) -> None:
    choice = random.Random(part)
    broken = mutants(seed=part + 10, count=5_000)
    read = 0
    while read < 125_000:
        lines = [
            line.replace(b'"seq":', b'"seq":%d' % choice.randrange(1, 10**12)) for line in choice.choices(GOOD, k=250)
        ]
        if choice.random() < 0.2:  # the other batches are good, and go the fast path as a whole
            for place in choice.sample(range(250), choice.randrange(1, 40)):
                lines[place] = next(broken, lines[place])
        for line, record in zip(lines, scan.read(lines), strict=True):
            assert describe(record) == describe(scan.explain(line)), line
        read += len(lines)


def judge(line: bytes, by_schema: jsonschema.Draft202012Validator) -> bool:
    """Whether `line` is a record, by another way: Python's json, the slow validator, and the rules one by one."""
    twice = [False]

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice[0] = twice[0] or len({key for key, _ in pairs}) < len(pairs)
        return dict(pairs)

    try:
        text = line.decode("utf-8")
        if re.search(r"NaN|Infinity", re.sub(r'"(\\.|[^"\\])*"', "", text)):
            return False
        value = json.loads(text, object_pairs_hook=unique)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")  # no lone surrogates, no infinity
    except ValueError:
        return False
    if not isinstance(value, dict) or twice[0] or not by_schema.is_valid({**value, "seq": 1}):
        return False
    return type(value["v"]) is int and type(value.get("seq")) is int


def test_the_explaining_path_agrees_with_another_judge() -> None:
    by_schema = jsonschema.Draft202012Validator(schema.load("record.v1"))
    good = 0
    for line in mutants(seed=4, count=8_000):
        accepted = not isinstance(scan.explain(line), BadLine)
        assert accepted is judge(line, by_schema), line
        good += accepted
    assert good > 200


@pytest.mark.parametrize("depth", [2, 100, 199, 200, 201, 253, 254, 255, 256, 257, 1023, 1024, 1025, 100_000])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("field", ["output", "input", "usage"])
def test_both_paths_agree_on_depth(depth: int, brackets: tuple[bytes, bytes], field: str) -> None:
    """orjson writes 254 levels and reads 1,024, jsonschema-rs takes 255: none of these limits may show."""
    opening, closing = brackets
    items = [{"type": "m", "x": 0}]
    inside = depth - 3  # the record, its output and the item are three levels
    line = question(1, FIRST, input=items) if field == "input" else answer(2, FIRST, output=items)
    if field == "usage":
        inside, line = depth - 2, answer(2, FIRST, usage={"x": 0})
    line = line.replace(b'"x":0', b'"x":' + opening * inside + b"1" + closing * inside)
    [record] = scan.read([line])
    if depth <= MAX_DEPTH:
        assert repr(record) == repr(scan.explain(line)) and not isinstance(record, BadLine)
    else:
        assert isinstance(record, BadLine) and record.code == "bad-record" and "200 levels" in record.message


@pytest.mark.parametrize(
    "number",
    [
        *(0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30, 10**MAX_DIGITS - 1),
        *(0.1, -0.0, 1e16, 1e22, 123456789.125, 5e-324, 1.7976931348623157e308),
    ],
)
def test_a_number_keeps_its_value_and_its_kind(number: float) -> None:
    line = answer(2, FIRST, output=[{"type": "m", "n": number}])
    for record in (scan.explain(line), *scan.read([line]), *scan.read([line.replace(b'"n":', b'"n": ')])):
        assert not isinstance(record, BadLine)
        assert record["type"] == "assistant_message"
        assert repr(record["output"][0]["n"]) == repr(number)


HUGE: dict[str, tuple[Callable[[], bytes], str | None]] = {
    "text": (lambda: question(1, FIRST, "x" * 50_000_000), None),
    "Chinese text": (lambda: question(1, FIRST, "漢" * 17_000_000), None),
    "escapes": (lambda: question(1, FIRST, "\n" * 10_000_000), None),
    "brackets": (lambda: b"[" * 50_000_000, "bad-record"),
    "objects": (lambda: b'{"a":' * 1_000_000, "bad-record"),
    "NUL": (lambda: b"\0" * 50_000_000, "bad-json"),
    "quotes": (lambda: b'"' * 50_000_000, "bad-json"),
    "backslashes": (lambda: b"\\" * 50_000_000, "bad-json"),
    "spaces": (lambda: b" " * 50_000_000, "bad-json"),
    "digits": (lambda: b'{"v":1,"seq":' + b"9" * 50_000_000 + b"}", "bad-record"),
    "decimals": (lambda: b'{"v":1,"seq":1.' + b"3" * 10_000_000 + b"}", "bad-record"),
    "keys": (lambda: b"{" + b",".join(b'"%d":1' % key for key in range(200_000)) + b',"7":1}', "duplicate-key"),
    "last key": (
        lambda: b"{" + b",".join(b'"%d":1' % key for key in range(200_000)) + b',"199999":1}',
        "duplicate-key",
    ),
    "key pairs": (lambda: b"[" + b",".join([b'{"a":1,"a":1}'] * 200_000) + b"]", "duplicate-key"),
    "cut text": (lambda: question(1, FIRST, "x" * 5_000_000)[:-1], "bad-json"),
}


@pytest.mark.parametrize("kind", HUGE)
def test_a_huge_line_is_judged_in_linear_time(kind: str) -> None:
    """Each takes about a second at most; one of them in quadratic time would take hours."""
    make, code = HUGE[kind]
    [record] = scan.read([make()])
    assert (record.code if isinstance(record, BadLine) else None) == code
