"""One line to one record and back; ids; what a record can hold."""

import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mino.journal import scan
from mino.journal.findings import BadLine
from mino.journal.record import (
    MAX_DEPTH,
    MAX_DIGITS,
    assistant_message,
    encode,
    id_time,
    is_deeper,
    new_id,
    parse,
    quote,
    storable,
    turn_end,
    user_message,
    whole_text,
)
from tests.unit.journal.sample import FIRST

any_text = st.text(st.characters(exclude_categories=["Cs"]))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
any_item = st.dictionaries(any_text, any_json, max_size=3).map(lambda item: {**item, "type": "message"})


def same(one: object, other: object) -> bool:
    """Equal in type and value: 1 is not True and not 1.0, -0.0 is not 0.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(text=any_text, output=st.none() | st.lists(any_item, max_size=3))
def test_a_record_comes_back_as_it_was_written(text: str, output: list[dict[str, Any]] | None) -> None:
    for record in (
        user_message(1, FIRST, text or "?"),
        assistant_message(2**70, FIRST, text, output),
        turn_end(3, FIRST, "interrupted"),
    ):
        data = encode(record)
        assert data.count(b"\n") == 1 and data.endswith(b"\n")
        assert same(list(scan.read([data[:-1]])), [record])
        assert same(scan.explain(data[:-1]), record)


def test_text_is_written_as_itself() -> None:
    text = '你好 😀 \u2028\u0085 "quoted" \\ \t\n\0'
    data = encode(user_message(1, FIRST, text))
    assert "你好 😀 \u2028\u0085".encode() in data
    assert data.endswith(rb'\"quoted\" \\ \t\n\u0000"}' + b"\n")


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (b"", "bad-json", "empty line"),
        (b" \t\r", "bad-json", "empty line"),
        (b"\0" * 700, "bad-json", "700 NUL bytes"),
        (b"\xef\xbb\xbf{}", "bad-json", "byte order mark"),
        ("{}".encode("utf-16"), "bad-json", "0xff at byte 0"),
        (b'{"a":"\xe6\xb3"}', "bad-json", "0xe6 at byte 6"),
        (b'{"a":"\xc0\x80"}', "bad-json", "UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "bad-json", "UTF-8"),
        ('{"法":"国" "x"}'.encode(), "bad-json", "byte 13 of the line"),
        (b'{"a":1}{"b":2}', "bad-json", "byte 7"),
        (b'{"a":"\r"}', "bad-json", "byte 6"),
        (b'{"a":"\0"}', "bad-json", "byte 6"),
        (b"\x0b{}", "bad-json", "byte 0"),
        ("\u00a0{}".encode(), "bad-json", "byte 0"),
        (b"{'a':1}", "bad-json", "byte 1"),
        (b'{"a":01}', "bad-json", "byte 6"),
        (b'{"a":.5}', "bad-json", "byte 5"),
        (b'{"a":+1}', "bad-json", "byte 5"),
        (b'{"a":1,}', "bad-json", "byte"),
        (b'{"a":"\\x41"}', "bad-json", "byte"),
        (b'{"a":NaN}', "bad-json", "NaN"),
        (b'{"a":[-Infinity]}', "bad-json", "-Infinity"),
        (b'{"a":1,"a":1}', "duplicate-key", '"a" twice'),
        (b'{"a":{"b":[{"c":1,"d":2,"c":3}]}}', "duplicate-key", '"c" twice'),
        (b'{"a":1,"\\u0061":1}', "duplicate-key", '"a" twice'),
        (b'{"a":1,"a":1', "bad-json", "byte"),
        (b'{"a":1e999}', "bad-record", "1e999"),
        (b'{"a":-1e400}', "bad-record", "-1e400"),
        (b'{"a":"\\ud83d"}', "bad-record", "surrogate"),
        (b'{"a":"\\ude00\\ud83d"}', "bad-record", "surrogate"),
        (b'{"\\uDBFF":1}', "bad-record", "surrogate"),
        (b'{"a":"\\ud83d', "bad-json", "byte"),
    ],
)
def test_a_line_that_is_no_record_is_told(line: bytes, code: str, words: str) -> None:
    with pytest.raises(BadLine) as caught:
        parse(line)
    assert caught.value.code == code
    assert words in caught.value.message
    assert "\n" not in caught.value.message and len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b' \t\r{"a":1} \t\r', {"a": 1}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        (b'{"a":"\\\\ud83d"}', {"a": "\\ud83d"}),
        ('{"a":"\u2028\u2029\u0085\x7f"}'.encode(), {"a": "\u2028\u2029\u0085\x7f"}),
        (b'{"a":18446744073709551616}', {"a": 2**64}),
        (b'{"a":-0}', {"a": 0}),
        (b'{"a":-0.0}', {"a": -0.0}),
        (b'{"a":1e-400}', {"a": 0.0}),
        (b'{"a":1.7976931348623157e308}', {"a": 1.7976931348623157e308}),
    ],
)
def test_a_line_that_is_json_keeps_its_value(line: bytes, value: object) -> None:
    assert same(parse(line), value)


def test_the_limits_are_exact() -> None:
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    parse(deep)
    for line in (b"[" + deep + b"]", b'{"a":' * (MAX_DEPTH + 1), b"[" * 1_000_000):
        with pytest.raises(BadLine, match=f"more than {MAX_DEPTH} levels") as caught:
            parse(line)
        assert caught.value.code == "bad-record"
    digits = b"9" * MAX_DIGITS
    assert parse(b"[" + digits + b",-" + digits + b"]") == [10**MAX_DIGITS - 1, 1 - 10**MAX_DIGITS]
    for line in (b"[1" + digits + b"]", b"[-1" + digits + b"]", b"[" + b"1" * 1_000_000 + b"]"):
        with pytest.raises(BadLine, match=f"more than {MAX_DIGITS} digits") as caught:
            parse(line)
        assert caught.value.code == "bad-record"


def test_brackets_in_strings_are_not_nesting() -> None:
    assert not is_deeper(b'["' + b"[" * 300 + b'"]', MAX_DEPTH)
    assert not is_deeper(rb'["\"' + b"{" * 300 + rb'\\"]', MAX_DEPTH)
    assert is_deeper(rb'["\\",' + b"[" * 200, MAX_DEPTH)
    assert not is_deeper(b"[]" * 300, MAX_DEPTH)


def test_a_legal_integer_is_read_whatever_python_is_told() -> None:
    """PYTHONINTMAXSTRDIGITS=640 would otherwise make a ValueError of a legal record."""
    code = "from mino.journal.record import *; n = 10**3999; assert parse(encode({'n': n})[:-1]) == {'n': n}"
    for limit in ("640", "0"):
        environ = {"PYTHONINTMAXSTRDIGITS": limit, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", code], env=environ, check=True)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text(st.characters(categories=["L", "Cs"]) | st.sampled_from("\ud83d\ude00😀\ufeff")))
def test_whole_text_joins_halves_and_replaces_lone_ones(text: str) -> None:
    expected = re.sub(
        "([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]",
        lambda found: (
            chr(0x10000 + (ord(found[1]) - 0xD800) * 0x400 + ord(found[2]) - 0xDC00) if found[1] else "\ufffd"
        ),
        text,
    )
    assert whole_text(text) == expected
    expected.encode()


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("item", "stored"),
    [
        ({"type": "message", "text": "巴黎 😀", "n": [1, 2**64, -(2**80), 1.5, None, True]}, ...),
        ({"type": "message", "n": 10**3999}, ...),
        ({"type": "message", "x": nested(197)}, ...),
        ({"type": "message", "x": nested(198)}, None),
        ({"type": "message", "x": nested(900)}, None),
        ({"type": "message", "n": 10**4000}, None),
        ({"type": "message", "n": 10**9000}, None),
        ({"type": "message", "x": float("nan")}, {"type": "message", "x": None}),
        ({"type": "message", "x": "a\ud83d"}, {"type": "message", "x": "a\ufffd"}),
        ({"type": "message", "x": "\ud83d\ude00"}, {"type": "message", "x": "😀"}),
        ({"type": "\ud83d", "\ude00": 2**70}, {"type": "\ufffd", "\ufffd": 2**70}),
        ({"type": "message"} | dict.fromkeys(("\ud83d", "\ude00")), None),
        ({"type": 1}, None),
        ({"role": "assistant"}, None),
        ("message", None),
        (None, None),
        ([{"type": "message"}], None),
    ],
)
def test_an_item_is_stored_in_a_form_that_the_loader_accepts_or_left_out(item: Any, stored: Any) -> None:
    kept = storable([{"type": "first"}, item, {"type": "last"}])
    expected = item if stored is ... else stored
    assert kept == [{"type": "first"}, *([expected] if expected else []), {"type": "last"}]
    record = assistant_message(1, FIRST, "", kept)
    assert scan.explain(encode(record)[:-1]) == record


def test_a_new_id_is_a_uuid_of_version_7_that_carries_the_time() -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    ids = [new_id() for _ in range(10_000)]
    after = datetime.now(UTC)
    assert len(set(ids)) == len(ids)
    for identifier in ids:
        assert len(identifier) == 32 and set(identifier) <= set("0123456789abcdef")
        assert identifier[12] == "7" and identifier[16] in "89ab"
        made = id_time(identifier)
        assert made and before <= made <= after
    # All 74 random bits are used: each hex digit that is all random takes all its values.
    for place in [*range(13, 16), *range(17, 32)]:
        assert len({identifier[place] for identifier in ids}) == 16


def test_ids_sort_by_time() -> None:
    first = new_id()
    time.sleep(0.002)  # two ids of one millisecond are in any order; what is tested is that the clock counts
    assert first < new_id()


@pytest.mark.parametrize(
    "identifier",
    [
        "0193a0b1c2d340008000000000000001",  # version 4
        "0193a0b1c2d37000c000000000000001",  # another variant
        "00000000000070008000000000000001",  # 1970
        "ffffffffffff70008000000000000001",  # after the year 9999
        "f" * 32,
        "0" * 32,
    ],
)
def test_an_id_that_is_no_plausible_version_7_has_no_time(identifier: str) -> None:
    assert id_time(identifier) is None


def test_the_time_of_an_id_is_that_of_rfc_9562() -> None:
    """The example of RFC 9562, appendix A.6: Tuesday, February 22, 2022 2:22:22.00 PM GMT-05:00."""
    made = id_time("017f22e279b07cc398c4dc0c0c07398f")
    assert made == datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)


def test_a_quote_is_short_and_can_be_encoded() -> None:
    assert quote("巴黎") == '"巴黎"'
    assert quote("a\nb") == r'"a\nb"'
    assert len(quote("x" * 10_000_000)) == 60
    assert quote({"a": "\ud83d"}).encode()
