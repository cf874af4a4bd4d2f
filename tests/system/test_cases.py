"""Session files after public fault reports, through `verify`, `show`, `recover` and `ask` (spec sections 3 to 5)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from tests.server import ScriptedServer
from tests.system.program import CASES, ROOT, Program, sent_texts

FIRST = ["我最喜欢的颜色是蓝色。", "你最喜欢的颜色是蓝色。"]
SECOND = ["And my dog is called Rex.", "Noted: Rex 🐕."]


class Case(NamedTuple):
    """What a file is: the codes and lines of its findings, what is sent of it, what recovery cuts and closes."""

    state: str
    findings: Sequence[tuple[str, int]] = ()
    context: list[str] = FIRST + SECOND
    cut: int = 0
    closed: str | None = None
    said: str = ""


TURN_2 = "0193a0b1c2d300000000000000000002"
CASE = {
    "good-two-turns": Case("clean"),
    "empty": Case("clean", context=[]),
    "crlf": Case("clean"),
    "line-separators-in-text": Case("clean", context=["a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg", "x\u2028y"]),
    "failed-and-cancelled": Case("clean", context=[*FIRST, "question", "answer"]),
    "torn-40-bytes": Case("recoverable", [("torn-tail", 7)], cut=40),
    "torn-half-character": Case("recoverable", [("torn-tail", 7)], cut=102),
    "nul-tail": Case("recoverable", [("torn-tail", 7)], cut=4096),
    "torn-last-newline": Case("recoverable", [("torn-tail", 6), ("open-turn", 4)], FIRST, cut=99, closed=TURN_2),
    "tail-half-character-with-newline": Case("recoverable", [("tail-syntax", 7)], cut=26),
    "nul-tail-with-newline": Case("recoverable", [("tail-syntax", 7)], cut=701),
    "blank-last-line": Case("recoverable", [("tail-syntax", 7)], cut=1),
    "torn-write-answer": Case("recoverable", [("torn-write", 5), ("open-turn", 4)], FIRST, cut=214, closed=TURN_2),
    "torn-write-both": Case("recoverable", [("torn-write", 5), ("open-turn", 4)], FIRST, cut=214, closed=TURN_2),
    "open-question": Case("recoverable", [("open-turn", 4)], FIRST, closed=TURN_2),
    "open-answer": Case("recoverable", [("open-turn", 4)], FIRST, closed=TURN_2),
    "nul-in-the-middle": Case("invalid", [("bad-json", 4)], said="NUL"),
    "nul-in-an-earlier-answer": Case("invalid", [("bad-json", 2)], said="NUL"),
    "broken-last-answer": Case("invalid", [("bad-json", 5)], said="not JSON"),
    "fused-records": Case("invalid", [("bad-json", 4)], said="not JSON"),
    "literal-newline-in-string": Case("invalid", [("bad-json", 4), ("bad-json", 5)], said="not JSON"),
    "blank-line-in-the-middle": Case("invalid", [("bad-json", 4)], said="empty line"),
    "byte-order-mark": Case("invalid", [("bad-json", 1)], said="byte order mark"),
    "newer-version": Case("invalid", [("unknown-version", 4)], said="newer Mino"),
    "unknown-field": Case("invalid", [("unknown-field", 4)], said="newer Mino"),
    "unknown-type": Case("invalid", [("unknown-type", 4)], said="newer Mino"),
    "duplicate-key": Case("invalid", [("duplicate-key", 4)], said="twice"),
    "seq-gap": Case("invalid", [("bad-seq", 4)], said="found seq 5, expected 4"),
    "seq-as-float": Case("invalid", [("bad-record", 4)], said="seq"),
    "reused-turn-id": Case("invalid", [("reused-turn-id", 4)], said="0193a0b1c2d300000000000000000001"),
    "two-questions": Case("invalid", [("bad-order", 5)], said="expected the end of turn"),
    "wrong-last-line-but-json": Case("invalid", [("bad-seq", 6)], said="expected 6"),
}
STATUS = {"clean": 0, "recoverable": 1, "invalid": 65}


def test_every_case_is_here() -> None:
    assert set(CASE) == {path.stem for path in CASES.iterdir()}


def schema(name: str) -> Any:
    return json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())


@pytest.mark.parametrize("name", CASE)
def test_readers_tell_what_it_is_and_write_nothing(mino: Program, name: str) -> None:
    case, data = CASE[name], (CASES / f"{name}.jsonl").read_bytes()
    path = mino.write_session(data)
    before = sorted(mino.home.rglob("*"))

    verified = mino.run("history", "verify", "--json")
    jsonschema.validate(verified.json, schema("report.v1"))
    assert (verified.status, verified.json["state"]) == (STATUS[case.state], case.state)
    assert [(finding["code"], finding["line"]) for finding in verified.json["findings"]] == list(case.findings)
    for finding in verified.json["findings"]:
        assert finding["byte"] == sum(len(line) + 1 for line in data.split(b"\n")[: finding["line"] - 1])
    assert case.said in "".join(finding["message"] for finding in verified.json["findings"])

    shown = mino.run("history", "show", "--json")
    assert shown.status == (65 if case.state == "invalid" else 0)
    assert all(code in shown.err for code, _ in case.findings[:1])
    turns = [json.loads(line) for line in shown.out.split("\n")[:-1]]
    for turn in turns:
        jsonschema.validate(turn, schema("turn.v1"))
    if case.state != "invalid":
        completed = [turn for turn in turns if turn["status"] == "completed"]
        assert [text for turn in completed for text in (turn["user"], turn["assistant"])] == case.context
        assert [turn["turn_id"] for turn in turns if turn["status"] == "open"] == [case.closed] * bool(case.closed)
    assert path.read_bytes() == data and sorted(mino.home.rglob("*")) == before


@pytest.mark.parametrize("name", [name for name, case in CASE.items() if case.state != "invalid"])
def test_ask_recovers_it_and_sends_only_completed_turns(mino: Program, server: ScriptedServer, name: str) -> None:
    case, data = CASE[name], (CASES / f"{name}.jsonl").read_bytes()
    path = mino.write_session(data)
    dry = mino.run("ask", "--dry-run", "现在?")
    asked = mino.run("ask", "现在?")
    assert (asked.status, asked.out) == (0, "巴黎 🗼\n")
    assert sent_texts(server.requests[0].json) == sent_texts(dry.json) == [*case.context, "现在?"]

    kept = len(data) - case.cut
    assert path.read_bytes()[:kept] == data[:kept]
    assert [copy.read_bytes() for copy in mino.copies] == [data] * bool(case.cut)
    assert all(copy.stat().st_mode & 0o777 == 0o600 for copy in mino.copies)
    _, report = mino.load()
    assert report.state == "clean" and report.turns["interrupted"] == bool(case.closed)

    assert len(asked.err.splitlines()) == bool(case.cut or case.closed)
    assert not case.cut or (f"{case.cut} byte" in asked.err and str(mino.copies[0]) in asked.err)
    assert not case.closed or case.closed in asked.err


@pytest.mark.parametrize("name", CASE)
def test_recover_does_the_same_on_demand(mino: Program, tmp_path: Path, name: str) -> None:
    case, data = CASE[name], (CASES / f"{name}.jsonl").read_bytes()
    file = tmp_path / "any name.jsonl"
    file.write_bytes(data)
    dry = mino.run("history", "recover", "--dry-run", "--json", str(file))
    assert file.read_bytes() == data and list(tmp_path.glob("*recovery*")) == []
    done = mino.run("history", "recover", "--json", str(file))
    if case.state == "invalid":
        assert dry.status == done.status == 65 and done.out == "" and case.findings[0][0] in done.err
        assert file.read_bytes() == data and list(tmp_path.glob("*recovery*")) == []
        return
    assert (dry.status, done.status) == (STATUS[case.state], 0)
    for outcome in (dry, done):
        jsonschema.validate(outcome.json, schema("recovery.v1"))
        assert (outcome.json["cut_bytes"], outcome.json["closed_turn"]) == (case.cut, case.closed)
    copies = list(tmp_path.glob("*recovery*"))
    assert [copy.read_bytes() for copy in copies] == [data] * bool(case.cut)
    assert done.json["recovery_copy"] == (str(copies[0]) if copies else None)
    assert mino.run("history", "verify", str(file)).status == 0


@pytest.mark.parametrize("name", [name for name, case in CASE.items() if case.state == "invalid"])
def test_salvage_keeps_a_copy_and_whole_turns(mino: Program, name: str) -> None:
    data = (CASES / f"{name}.jsonl").read_bytes()
    path = mino.write_session(data)
    done = mino.run("history", "recover", "--salvage", "--json")
    if "newer Mino" in CASE[name].said:
        assert done.status == 65 and "newer Mino" in done.err
        assert path.read_bytes() == data and not mino.copies
        return
    jsonschema.validate(done.json, schema("recovery.v1"))
    turns, report = mino.load()
    assert (done.status, report.state, len(turns)) == (0, "clean", done.json["kept_turns"])
    assert [copy.read_bytes() for copy in mino.copies] == [data]
