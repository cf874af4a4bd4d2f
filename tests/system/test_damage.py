"""Damage in the middle: nothing is sent, the file stays as it is, and the message says where, what, and what now."""

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from tests.server import ScriptedServer
from tests.system.program import BOTH, CASES, Program

Lines = list[bytes]
Damage = Callable[[Lines], object]

GOOD = (CASES / "good-two-turns.jsonl").read_bytes()
FIRST_ID, SECOND_ID = b"0193a0b1c2d300000000000000000001", b"0193a0b1c2d300000000000000000002"


def put(line: bytes) -> Damage:
    """Line 4, the second question, becomes `line`."""
    return lambda lines: lines.__setitem__(3, line)


def change(old: bytes, new: bytes) -> Damage:
    """In line 4 `old` becomes `new`."""
    return lambda lines: lines.__setitem__(3, lines[3].replace(old, new, 1))


def bad_order(lines: Lines) -> None:
    """The answer and the end of the second turn change places, their numbers do not."""
    lines[4], lines[5] = lines[5].replace(b'"seq":6', b'"seq":5'), lines[4].replace(b'"seq":5', b'"seq":6')


TEXT = b'"text":"And my dog is called Rex."'
DAMAGE: list[tuple[str, int, Damage, str]] = [
    ("bad-json", 4, put(b"rubbish"), "not JSON: expecting value"),
    ("bad-json", 4, put(b""), "empty line"),
    ("bad-json", 4, put(b"\0" * 512), "NUL bytes"),
    ("bad-json", 4, put(b"{"), "double quotes after `{`"),
    ("bad-json", 4, change(b"dog", b"d\xf6g"), "0xf6"),
    ("bad-json", 4, change(b"dog", b"d\rg"), "control character"),
    ("bad-json", 4, change(TEXT, b'"text":NaN'), "NaN"),
    ("duplicate-key", 4, change(b'"v":1', b'"v":1,"v":1'), '"v"'),
    ("unknown-version", 4, change(b'"v":1', b'"v":2'), "2"),
    ("unknown-type", 4, change(b'"user_message"', b'"tool_call"'), "tool_call"),
    ("unknown-field", 4, change(b'"v":1', b'"v":1,"time":5'), "time"),
    ("bad-record", 4, change(b'"seq":4,', b""), "seq"),
    ("bad-record", 4, change(b'"seq":4', b'"seq":4.0'), "4.0"),
    ("bad-record", 4, change(b'"seq":4', b'"seq":true'), "true"),
    ("bad-record", 4, change(TEXT, b'"text":""'), "text"),
    ("bad-record", 4, change(b"dog", b"\\ud83d"), "surrogate"),
    ("bad-record", 4, put(b'"a string"'), "object"),
    ("bad-record", 4, put(b"[" * 300 + b"]" * 300), "nesting"),
    ("bad-turn-id", 4, change(SECOND_ID, b"0193A0B1C2D300000000000000000002"), "0193A0B1"),
    ("reused-turn-id", 4, change(SECOND_ID, FIRST_ID), FIRST_ID.decode()),
    ("bad-seq", 4, change(b'"seq":4', b'"seq":7'), "found seq 7, expected 4"),
    ("bad-order", 5, bad_order, "completed"),
]


def test_every_invalid_code_is_here() -> None:
    from mino.journal.findings import INVALID

    assert {code for code, *_ in DAMAGE} == set(INVALID) - {"not-a-session"}  # which no session file is


@BOTH
@pytest.mark.parametrize(("code", "line", "damage", "found"), DAMAGE)
def test_damage_stops_every_writer(
    mino: Program, server: ScriptedServer, code: str, line: int, damage: Damage, found: str
) -> None:
    lines = GOOD.split(b"\n")
    damage(lines)
    data = b"\n".join(lines)
    path = mino.write_session(data)
    byte = sum(len(line) + 1 for line in lines[: line - 1])

    asked = mino.run("ask", "q")
    assert (asked.status, asked.out) == (65, "") and not server.connections
    message, hint = asked.err.splitlines()
    assert f"'{path}' line {line} (byte {byte}): {code}: " in message
    assert found in message.partition(code)[2] and "unchanged" in message
    assert "not found" not in message and "damaged" not in message
    check_advice(mino, hint, code)
    assert path.read_bytes() == data and mino.files() == [path]


def check_advice(mino: Program, hint: str, code: str) -> None:
    """The hint names a command that can be run as it stands, and that changes nothing."""
    advice = hint.removeprefix("hint: ")
    if code.startswith("unknown"):
        assert "update Mino" in advice and "sed -n 4p" in advice
        return
    program, *words = shlex.split(advice)
    assert program == "mino"
    run = mino.run(*words)
    assert run.status == 1 and "salvage would keep" in run.out


@BOTH
@pytest.mark.parametrize("words", [["ask", "--dry-run", "q"], ["history", "recover"], ["history", "show", "--context"]])
def test_other_commands_stop_as_well(mino: Program, words: list[str]) -> None:
    data = GOOD.replace(b'"seq":4', b'"seq":9')
    path = mino.write_session(data)
    ended = mino.run(*words)
    assert (ended.status, ended.out) == (65, "") and f"'{path}' line 4 (byte 357): bad-seq" in ended.err
    assert path.read_bytes() == data and mino.files() == [path]


@BOTH
def test_show_prints_what_stands_before_the_damage(mino: Program) -> None:
    mino.write_session(GOOD.replace(b'"seq":4', b'"seq":9'))
    shown = mino.run("history", "show", "--json")
    turn: Any = json.loads(shown.out)
    assert (shown.status, turn["number"], turn["status"]) == (65, 1, "completed")


def test_two_session_files_stop_every_command(mino: Program, server: ScriptedServer) -> None:
    path = mino.write_session(GOOD)
    other = path.with_name("f" * 32 + ".jsonl")
    other.write_bytes(GOOD)
    other.chmod(0o600)
    for words in (
        ["ask", "q"],
        ["ask", "--dry-run", "q"],
        ["history", "show"],
        ["history", "verify"],
        ["history", "recover"],
    ):
        ended = mino.run(*words)
        assert (ended.status, ended.out) == (65, "") and "more than one conversation" in ended.err
        assert path.name in ended.err and other.name in ended.err
    assert not server.connections and path.read_bytes() == other.read_bytes() == GOOD


@BOTH
def test_a_symbolic_link_in_place_of_the_session_is_refused(mino: Program, server: ScriptedServer) -> None:
    path = mino.write_session(GOOD)
    elsewhere = mino.home / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    for words in (["ask", "q"], ["history", "show"], ["history", "verify"]):
        ended = mino.run(*words)
        assert ended.status == 74 and "symbolic link" in ended.err
    assert not server.connections and elsewhere.read_bytes() == GOOD
