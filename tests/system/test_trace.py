"""The order of system calls in one turn: what is on disk before what goes out, and how few calls it takes."""

import re
from pathlib import Path

import pytest

from tests.server import ScriptedServer
from tests.system.prefixes import traced
from tests.system.program import CASES, SESSION_ID, Program

CALLS = "open,openat,read,pread64,readv,write,pwrite64,writev,fsync,fdatasync,connect,sendto,sendmsg,rename,exit_group"
_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")


def trace(mino: Program, *words: str) -> list[tuple[str, str, int]]:
    """Run `mino` with `words`: each call's name, its arguments (descriptors with their paths) and what it returned."""
    log = mino.home.parent / "trace"
    ended = mino.run(*words, prefix=traced("-y", "-s", "100000", "-o", str(log), "-e", f"trace={CALLS}"))
    assert ended.status == 0 and ended.out
    return parse(log)


def parse(log: Path) -> list[tuple[str, str, int]]:
    """The calls in the order of their begin; one that another thread interrupted stands on two lines of the log."""
    begun: dict[str, str] = {}
    calls = []
    for line in log.read_text().splitlines():
        if line.endswith("<unfinished ...>"):
            begun[line.split()[0]] = line.removesuffix("<unfinished ...>")
            continue
        resumed = _RESUMED.match(line)
        if resumed:
            line = begun.pop(resumed[1]) + resumed[3].lstrip()
        call = _CALL.match(line)
        if call:
            calls.append((call[1], call[2], int(call[3])))
        elif "exit_group" in line:
            calls.append(("exit_group", line.partition("(")[2].partition(")")[0], 0))
    return calls


def places(calls: list[tuple[str, str, int]], name: str, part: str = "") -> list[int]:
    """Where the calls `name` with `part` in their arguments stand."""
    return [place for place, (call, arguments, _) in enumerate(calls) if call == name and part in arguments]


@pytest.fixture
def calls(mino: Program, server: ScriptedServer) -> list[tuple[str, str, int]]:
    """The calls of one turn in a session of two turns."""
    mino.write_session((CASES / "good-two-turns.jsonl").read_bytes())
    return trace(mino, "ask", "-m", "m", "now")


def test_the_question_is_on_disk_before_the_connection_is_opened(calls: list[tuple[str, str, int]]) -> None:
    [written] = places(calls, "write", "user_message")
    synced, *_ = places(calls, "fsync", SESSION_ID)
    connected, *_ = places(calls, "connect", "AF_INET")
    assert written < synced < connected
    _, arguments, returned = calls[written]
    assert SESSION_ID in arguments and arguments.count(r"\n") == 1 and returned == int(arguments.split()[-1])


def test_answer_and_end_are_one_write_and_synced_before_the_exit(calls: list[tuple[str, str, int]]) -> None:
    [written] = places(calls, "write", "assistant_message")
    assert places(calls, "write", "turn_end") == [written] and SESSION_ID in calls[written][1]
    _, synced = places(calls, "fsync", SESSION_ID)
    shown = places(calls, "write", "1<pipe")
    [exited] = places(calls, "exit_group", "0")
    assert max(places(calls, "connect", "AF_INET")) < min(shown) < written < synced < exited


def test_a_turn_takes_two_writes_two_syncs_and_one_reading(calls: list[tuple[str, str, int]]) -> None:
    about = [(name, returned) for name, arguments, returned in calls if SESSION_ID in arguments]
    assert [name for name, _ in about if "write" in name] == ["write"] * 2
    assert [name for name, _ in about if "sync" in name] == ["fsync"] * 2
    assert [name for name, _ in about if name.startswith("open")] == ["openat"]
    # All of it in one read, and one more that finds the end.
    assert [returned for name, returned in about if "read" in name] == [689, 0]


def test_readers_open_nothing_for_writing(mino: Program) -> None:
    mino.write_session((CASES / "torn-40-bytes.jsonl").read_bytes())
    for words in (["history", "show"], ["ask", "--dry-run", "q"]):
        calls = trace(mino, *words)
        assert places(calls, "openat", SESSION_ID) and not places(calls, "fsync") and not places(calls, "connect")
        opened = [calls[place][1] for place in places(calls, "openat", str(mino.home))]
        assert not [how for how in opened if re.search("O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", how)]
