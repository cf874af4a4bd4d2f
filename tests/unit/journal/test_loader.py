"""Bytes → turns, state and findings: the cases, every cut of a history, and files that are large and broken."""

import random
import tracemalloc
from collections.abc import Iterable

import pytest

from mino.journal.findings import KEPT_FINDINGS, Finding
from mino.journal.loader import Loading
from tests.unit.journal.sample import (
    CASES,
    FIRST,
    SECOND,
    THIRD,
    answer,
    end,
    file_of,
    found,
    load,
    question,
    random_chunks,
    turn,
    two_turns,
)

TWO = {"completed": 2}

# name: state, findings, records, turns, the next seq, and words of the first sentence.
Expected = tuple[str, list[tuple[str, int, int]], int, dict[str, int], int, str]
EXPECTED: dict[str, Expected] = {
    "good-two-turns": ("clean", [], 6, TWO, 7, ""),
    "empty": ("clean", [], 0, {}, 1, ""),
    "torn-40-bytes": ("recoverable", [("torn-tail", 7, 689)], 6, TWO, 7, "40 bytes without a newline"),
    "torn-last-newline": (
        *("recoverable", [("torn-tail", 6, 589), ("open-turn", 4, 357)]),
        *(5, {"completed": 1, "open": 1}, 6, "99 bytes without a newline"),
    ),
    "torn-half-character": ("recoverable", [("torn-tail", 7, 689)], 6, TWO, 7, "102 bytes without a newline"),
    "tail-half-character-with-newline": ("recoverable", [("tail-syntax", 7, 689)], 6, TWO, 7, "not UTF-8"),
    "nul-tail": ("recoverable", [("torn-tail", 7, 689)], 6, TWO, 7, "4096 bytes without a newline"),
    "nul-tail-with-newline": ("recoverable", [("tail-syntax", 7, 689)], 6, TWO, 7, "found NUL bytes"),
    "torn-write-answer": (
        *("recoverable", [("torn-write", 5, 475), ("open-turn", 4, 357)]),
        *(4, {"completed": 1, "open": 1}, 5, "found NUL bytes"),
    ),
    "torn-write-both": (
        *("recoverable", [("torn-write", 5, 475), ("open-turn", 4, 357)]),
        *(4, {"completed": 1, "open": 1}, 5, "found NUL bytes"),
    ),
    "nul-in-an-earlier-answer": ("invalid", [("bad-json", 2, 126)], 5, TWO, 7, "found NUL bytes"),
    "broken-last-answer": ("invalid", [("bad-json", 5, 475)], 5, TWO, 7, "not JSON: "),
    "nul-in-the-middle": ("invalid", [("bad-json", 4, 357)], 6, TWO, 7, "found NUL bytes"),
    "fused-records": ("invalid", [("bad-json", 4, 357)], 5, {"completed": 1}, 7, "not JSON: "),
    "line-separators-in-text": ("clean", [], 3, {"completed": 1}, 4, ""),
    "literal-newline-in-string": (
        *("invalid", [("bad-json", 4, 357), ("bad-json", 5, 449)]),
        *(5, {"completed": 1}, 7, "unterminated string"),
    ),
    "blank-line-in-the-middle": ("invalid", [("bad-json", 4, 357)], 6, TWO, 7, "an empty line"),
    "blank-last-line": ("recoverable", [("tail-syntax", 7, 689)], 6, TWO, 7, "an empty line"),
    "newer-version": ("invalid", [("unknown-version", 4, 357)], 5, {"completed": 1}, 7, "written by a newer Mino"),
    "unknown-field": ("invalid", [("unknown-field", 4, 357)], 5, {"completed": 1}, 7, '"at"'),
    "unknown-type": ("invalid", [("unknown-type", 4, 357)], 5, {"completed": 1}, 7, '"note"'),
    "duplicate-key": ("invalid", [("duplicate-key", 4, 357)], 5, {"completed": 1}, 7, '"seq" twice'),
    "seq-gap": ("invalid", [("bad-seq", 4, 357)], 6, TWO, 8, "found seq 5, expected 4"),
    "seq-as-float": ("invalid", [("bad-record", 4, 357)], 5, {"completed": 1}, 7, "found 4.0"),
    "reused-turn-id": ("invalid", [("reused-turn-id", 4, 357)], 6, TWO, 7, "again, expected a new one"),
    "two-questions": ("invalid", [("bad-order", 5, 458)], 7, TWO, 8, "expected the end of turn"),
    "wrong-last-line-but-json": ("invalid", [("bad-seq", 6, 589)], 6, TWO, 7, "found seq 9, expected 6"),
    "open-question": ("recoverable", [("open-turn", 4, 357)], 4, {"completed": 1, "open": 1}, 5, "has no end"),
    "open-answer": ("recoverable", [("open-turn", 4, 357)], 5, {"completed": 1, "open": 1}, 6, "has no end"),
    "failed-and-cancelled": ("clean", [], 10, {"completed": 2, "failed": 1, "cancelled": 1}, 11, ""),
    "byte-order-mark": ("invalid", [("bad-json", 1, 0)], 5, {"completed": 1}, 7, "byte order mark"),
    "crlf": ("clean", [], 6, TWO, 7, ""),
}


def test_every_case_has_an_expectation() -> None:
    assert {path.stem for path in CASES.glob("*.jsonl")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_case(name: str) -> None:
    state, findings, records, turns, next_seq, words = EXPECTED[name]
    data = (CASES / f"{name}.jsonl").read_bytes()
    seen, report = load(data, all_findings=True)
    assert report.state == state
    assert [(finding.code, finding.line, finding.byte) for finding in report.findings] == findings
    assert (report.records, dict(report.turns), report.next_seq, report.bytes) == (records, turns, next_seq, len(data))
    assert not words or words in report.findings[0].message
    # A writer's loading stops at the first finding that it cannot recover from, and gives what stands before it.
    before, first = load(data)
    assert first.state == state
    assert first.findings[:1] == report.findings[:1]
    if state == "invalid":
        assert first.worst == first.findings[-1] == report.findings[0]
        assert sum(turn.last_line for turn in before[-1:]) < findings[0][1]
    else:
        assert (before, first.findings, first.end) == (seen, report.findings, report.end)


def check_cut(complete: int, torn: int, chunks: Iterable[bytes], *, all_findings: bool) -> None:
    """A history of completed turns that was cut after `complete` whole lines and `torn` bytes of the next one."""
    lines = two_turns()
    turns, report = load(chunks, all_findings=all_findings)
    start = len(file_of(lines[:complete]))
    expected, open_turn = [], None
    if torn:
        message = f"found {torn} byte{'s' * (torn > 1)} without a newline, expected a whole record"
        expected.append(Finding("torn-tail", complete + 1, start, message))
    ended, inside = divmod(complete, 3)
    if inside:
        first = ended * 3
        open_turn = (FIRST, SECOND)[ended]
        message = f"turn {open_turn} has no end"
        expected.append(Finding("open-turn", first + 1, len(file_of(lines[:first])), message))
    assert report.findings == expected
    assert report.state == ("recoverable" if expected else "clean")
    assert (report.bytes, report.end, report.records) == (start + torn, start, complete)
    assert report.next_seq == complete + 1
    # What goes into a request is never more than the turns whose last newline is there.
    assert [turn.turn_id for turn in turns if turn.status == "completed"] == [FIRST, SECOND][:ended]
    assert [turn.status for turn in turns[ended:]] == (["open"] if inside else [])
    assert report.open_turn == open_turn


@pytest.mark.parametrize("all_findings", [False, True])
def test_every_cut_of_a_history_in_any_chunks(all_findings: bool) -> None:
    data = file_of(two_turns())
    assert "法国".encode() in data and "😀".encode() in data
    choice = random.Random(5)
    for cut in range(len(data) + 1):
        kept = data[:cut]
        complete = kept.count(b"\n")
        torn = cut - (kept.rfind(b"\n") + 1)
        bytewise = [kept[place : place + 1] for place in range(cut)]
        for chunks in ([kept], bytewise, random_chunks(kept, choice)):
            check_cut(complete, torn, chunks, all_findings=all_findings)


def test_every_cut_that_got_a_newline_is_a_tail_too() -> None:
    lines = two_turns()
    for number, line in enumerate(lines):
        for cut in range(len(line)):
            data = file_of([*lines[:number], line[:cut]])
            turns, report = load(data)
            opened = [("open-turn", number // 3 * 3 + 1)] if number % 3 else []
            assert found(data) == [("tail-syntax", number + 1), *opened]
            assert report.state == "recoverable" and report.end == len(file_of(lines[:number]))
            assert report.next_seq == number + 1
            assert sum(turn.status == "completed" for turn in turns) == number // 3


BAD_LINES: dict[str, tuple[bytes, ...]] = {
    "bad-json": (b"", b"{", b"\0\0", b'{"v":NaN}', b"\xff", b'{"text":"\xe6\xb3', question(4, SECOND) + b"{}"),
    "duplicate-key": (b'{"v":1,"v":1}', question(4, SECOND)[:-1] + b',"text":"x"}'),
    "unknown-version": (question(4, SECOND).replace(b'"v":1', b'"v":2'), b'{"v":3}'),
    "unknown-type": (question(4, SECOND).replace(b"user_message", b"note"),),
    "unknown-field": (question(4, SECOND)[:-1] + b',"at":"now"}',),
    "bad-record": (
        *(b"null", b"[]", b"7", b'"x"', b"{}", b'{"v":1}', b"[" * 201 + b"]" * 201, b"[" * 5000, b"[1e999]"),
        *(b"[" + b"9" * 4001 + b"]", question(4, SECOND, ""), question(4, SECOND).replace(b'"v":1', b'"v":1.0')),
        *(question(4, SECOND).replace(b'"seq":4', b'"seq":4.0'), question(4, SECOND, "?").replace(b"?", b"\\ud83d")),
    ),
    "bad-turn-id": (question(4, SECOND.upper()), question(4, SECOND[:-1]), question(4, "")),
    "reused-turn-id": (question(4, FIRST),),
    "bad-seq": (
        question(3, SECOND),
        question(5, SECOND),
        question(0, SECOND),
        question(-1, SECOND),
        question(10**3999, SECOND),
    ),
    "bad-order": (answer(4, SECOND), end(4, SECOND, "failed")),
}


@pytest.mark.parametrize(("code", "bad"), [(code, bad) for code, lines in BAD_LINES.items() for bad in lines])
def test_a_bad_line_in_the_middle_is_one_finding_and_at_the_end_never_a_tail_but_for_syntax(
    code: str, bad: bytes
) -> None:
    start = file_of(turn(1, FIRST))
    [finding] = load(start + bad + b"\n" + file_of(turn(4, SECOND)[1:]), all_findings=True)[1].findings
    assert (finding.code, finding.line, finding.byte) == (code, 4, len(start))
    turns, report = load(start + bad + b"\n")
    assert report.state == ("recoverable" if code == "bad-json" else "invalid")
    first = report.findings[0]
    assert (first.code, first.line, first.byte) == ("tail-syntax" if code == "bad-json" else code, 4, len(start))
    assert [turn.turn_id for turn in turns if turn.status == "completed"] == [FIRST]
    assert len(finding.message) < 300 and "\n" not in finding.message


def test_a_newline_after_text_that_was_torn_is_not_healed_by_what_follows() -> None:
    lines = two_turns()
    data = file_of(lines[:4]) + lines[4][:50] + b"\n" + file_of(lines[4:]) + b"{"
    assert found(data) == [("bad-json", 5), ("torn-tail", 8)]
    assert load(data)[1].state == "invalid"


def test_white_space_around_a_record_is_json() -> None:
    lines = [b" \t" + line + b" \r" for line in two_turns()]
    assert load(file_of(lines))[1].state == "clean"


@pytest.mark.parametrize("length", [1, 4096, 65536, 1 << 20, (1 << 20) + 1, 20_000_000])
def test_a_torn_record_may_be_of_any_length(length: int) -> None:
    start = file_of(two_turns())
    data = start + question(7, THIRD, "x" * length)[:length]
    chunks = [data[place : place + (1 << 20)] for place in range(0, len(data), 1 << 20)]
    _, report = load(chunks)
    assert [finding.code for finding in report.findings] == ["torn-tail"]
    assert (report.end, report.bytes) == (len(start), len(start) + length)


def test_findings_are_counted_when_there_are_too_many_to_hold() -> None:
    _, report = load([file_of(two_turns()), b"\n" * 100_000], all_findings=True)
    assert len(report.findings) == KEPT_FINDINGS
    assert report.dropped_findings == 100_000 - KEPT_FINDINGS
    assert report.state == "invalid"


def test_findings_are_held_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mino.journal.findings.KEPT_FINDINGS", 100)
    tracemalloc.start()
    _, report = load([b"\n" * 1_000] * 20, all_findings=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.dropped_findings == 20_000 - 100
    assert peak < 1_000_000


def test_memory_does_not_grow_with_the_file() -> None:
    """20 MB of answers in one turn after another: what is held is a chunk, and an id a turn."""
    text = "x" * 20_000
    numbers = range(1000)
    ids = [f"{number:032x}" for number in numbers]
    turns = [[question(n * 3 + 1, ids[n]), answer(n * 3 + 2, ids[n], text), end(n * 3 + 3, ids[n])] for n in numbers]
    tracemalloc.start()
    loading = Loading(map(file_of, turns), all_findings=True)
    assert sum(turn.status == "completed" for turn in loading) == 1000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loading.report.state == "clean" and loading.report.bytes > 20_000_000
    assert peak < 2_000_000


@pytest.mark.parametrize("line", [b"", b"[", b"[]", question(4, SECOND.upper()), question(9, THIRD), answer(2, FIRST)])
def test_many_bad_lines_take_linear_time(line: bytes) -> None:
    """In quadratic time one of these would take minutes."""
    _, report = load(file_of(two_turns() + [line] * 20_000), all_findings=True)
    assert report.findings[0].line == 7 and report.state == "invalid"
    assert len(report.findings) + report.dropped_findings >= 10_000
