"""One line to one JSON value: what is refused and why, what keeps its value, and the limits."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mino.journal.findings import BadLine
from mino.journal.strict import MAX_DEPTH, MAX_DIGITS, is_deeper, parse
from tests.unit.journal.sample import FIRST, answer, end, file_of, question, same


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (b"", "bad-json", "empty line"),
        (b" \t\r", "bad-json", "empty line"),
        (b"\0" * 700, "bad-json", "found NUL bytes, expected a record"),
        (b"\xef\xbb\xbf{}", "bad-json", "byte order mark"),
        ("{}".encode("utf-16"), "bad-json", "found NUL bytes, expected a record"),
        (b'{"a":"\xe6\xb3"}', "bad-json", "the byte 0xe6, which"),
        (b'{"a":"\xc0\x80"}', "bad-json", "UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "bad-json", "UTF-8"),
        ('{"法":"国" "x"}'.encode(), "bad-json", 'not JSON: expecting \',\' delimiter after `{"法":"国"`'),
        (b'{"a":1}{"b":2}', "bad-json", 'not JSON: extra data after `{"a":1}`'),
        (b'{"a":"\r"}', "bad-json", 'not JSON: invalid control character after `{"a":"`'),
        (b'{"a":"\0"}', "bad-json", "found NUL bytes, expected a record"),
        (b"\x0b{}", "bad-json", "not JSON: expecting value"),
        ("\u00a0{}".encode(), "bad-json", "not JSON: expecting value"),
        (b"{'a':1}", "bad-json", "double quotes after `{`"),
        (b'{"a":01}', "bad-json", 'after `{"a":0`'),
        (b'{"a":.5}', "bad-json", 'expecting value after `{"a":`'),
        (b'{"a":+1}', "bad-json", "expecting value"),
        (b'{"a":1,}', "bad-json", "not JSON: "),
        (b'{"a":"\\x41"}', "bad-json", 'not JSON: invalid \\escape after `{"a":"`'),
        (b'{"a":NaN}', "bad-json", "NaN"),
        (b'{"a":[-Infinity]}', "bad-json", "-Infinity"),
        (b'{"a":1,"a":1}', "duplicate-key", '"a" twice'),
        (b'{"a":{"b":[{"c":1,"d":2,"c":3}]}}', "duplicate-key", '"c" twice'),
        (b'{"a":1,"\\u0061":1}', "duplicate-key", '"a" twice'),
        (b'{"a":1,"a":1', "bad-json", "not JSON: "),
        (b'{"a":1e999}', "bad-record", "1e999"),
        (b'{"a":-1e400}', "bad-record", "-1e400"),
        (b'{"a":"\\ud83d"}', "bad-record", "surrogate"),
        (b'{"a":"\\ude00\\ud83d"}', "bad-record", "surrogate"),
        (b'{"\\uDBFF":1}', "bad-record", "surrogate"),
        (b'{"a":"\\ud83d', "bad-json", 'not JSON: invalid \\uXXXX escape after `{"a":"'),
        (b'"a', "bad-json", "not JSON: unterminated string"),
    ],
)
def test_a_line_that_is_no_record_is_told(line: bytes, code: str, words: str) -> None:
    with pytest.raises(BadLine) as caught:
        parse(line)
    assert caught.value.code == code
    assert words in caught.value.message
    assert "\n" not in caught.value.message and len(caught.value.message) < 200
    # One sentence with an end, and no offset in the line beside that of the line, which the finding has.
    assert not re.search(r"\d of the line|at byte|(?: at| starting|:) *(?:$| after)", caught.value.message)


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


@pytest.mark.parametrize("limit", ["640", "0"])
def test_a_legal_integer_is_read_and_written_whatever_python_is_told(limit: str, tmp_path: Path) -> None:
    """PYTHONINTMAXSTRDIGITS=640 would otherwise make a ValueError of a legal record."""
    path = tmp_path / "多大.jsonl"
    items = [{"type": "message", "n": 10 ** (MAX_DIGITS - 1), "m": -(10 ** (MAX_DIGITS - 1))}]
    data = file_of([question(1, FIRST, "多大？ 🔢"), answer(2, FIRST, output=items), end(3, FIRST)])
    environ = {
        "PYTHONINTMAXSTRDIGITS": limit,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "MINO_HOME": str(tmp_path / "home"),
    }

    def mino(*arguments: str) -> str:
        command = [sys.executable, "-m", "mino", "history", *arguments, str(path)]
        return subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout

    path.write_bytes(data)
    assert json.loads(mino("verify", "--json"))["state"] == "clean"
    path.write_bytes(b"x\n" + data)
    mino("recover", "--salvage")
    assert path.read_bytes() == data
