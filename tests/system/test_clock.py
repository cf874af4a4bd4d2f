"""A clock that is wrong, as on a computer whose battery is empty: ids, names and times stay what they must be."""

import re
from pathlib import Path

import pytest

from tests.homes import completed, saved_in
from tests.server import ScriptedServer
from tests.system.program import Program

# Nobody may set the clock of the machine for a test, so the interpreter is started with another one.
CLOCK = """
import os, time
now = int(os.environ["CLOCK"])
gmtime = time.gmtime
def nanoseconds():
    if abs(now) * 10**9 >= 1 << 63:
        raise OverflowError("timestamp too large to convert to C _PyTime_t")  # as Python says from the year 2262 on
    return now * 10**9
time.time, time.time_ns = lambda: nanoseconds() / 10**9, nanoseconds
time.clock_gettime = lambda clock: float(now)
time.gmtime = lambda seconds=None: gmtime(now if seconds is None else seconds)
"""
CLOCKS = {
    "the year 1": -62_135_596_800,
    "the year 1600": -11_676_096_000,
    "1969": -1,
    "1970": 0,
    "2026": 1_790_000_000,
    "3000": 32_503_680_000,
    "9999, the last second": 253_402_300_799,
    "10000": 253_402_300_800,
    "10889, the last of 48 bits": 281_474_976_710,
    "10889, the first that has more": 281_474_976_711,
    "292277026596": 9_000_000_000_000_000,
}


@pytest.mark.parametrize("now", CLOCKS.values(), ids=CLOCKS)
def test_whatever_the_clock_says_the_conversation_is_valid(
    mino: Program, server: ScriptedServer, tmp_path: Path, now: int
) -> None:
    """Before 1970 an id had a sign, and after 10889 a digit more: each `ask` made a file that no command found."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(CLOCK)
    mino.environ |= {"PYTHONPATH": f"{tmp_path / 'clock'}:{mino.environ['PYTHONPATH']}", "CLOCK": str(now), "TZ": "UTC"}
    assert mino.run("session", "new").status == 0
    assert re.fullmatch(r"[0-9a-f]{32}\.jsonl", mino.session.name)
    if abs(now) < 1 << 33:  # beyond that the libraries that speak HTTP do not load
        assert [mino.run("ask", question).status for question in ("甲", "乙")] == [0, 0]
        times = re.findall(r"turn \d+ (.*) completed", mino.run("history", "show").out)
        assert len(times) == 2 and all(("2026-09-21" in time) is (now == CLOCKS["2026"]) for time in times)
    else:
        mino.session.write_bytes(completed(("甲", "a"), ("乙", "b")))
    turns, report = mino.load()
    assert report.state == "clean" and [turn.status for turn in turns] == ["completed"] * 2
    assert mino.run("history", "verify").status == 0

    mino.session.write_bytes(mino.session.read_bytes() + b"{")
    assert mino.run("session", "save", "whole").status == 0
    assert mino.run("history", "recover").out.startswith(f"{mino.session}: recovered: cut ")
    copies = [path.name for path in mino.files() if path != mino.session]
    assert len(copies) == 1 and re.fullmatch(r"[0-9a-f]{32}-recovery-\d{8}T\d{6}Z-[0-9a-f]{8}\.jsonl", copies[0])

    (mino.home / "saved" / "whole.jsonl").unlink()
    assert mino.run("session", "new").status == 0
    [automatic] = saved_in(mino.home)
    assert re.fullmatch(r"auto-\d{8}T\d{6}Z", automatic)
    assert mino.run("session", "load", automatic).status == 0
    assert len(mino.load()[0]) == 2
