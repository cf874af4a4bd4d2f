"""`mino history search`, run as a user runs it."""

import os
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from mino.journal.lock import lock_exclusive
from tests import homes
from tests.homes import completed, judge, make_home
from tests.server import wait_until
from tests.system.program import Program, finish
from tests.system.window import Window

LIVE = completed(("Where is the Louvre?", "In Paris.\nIt is a museum."), ("巴黎有多少人？", "两百万。"))
OTHER = completed(("Name a city.", "Paris, or Rome."))


def test_the_current_conversation_or_the_named_one(mino: Program) -> None:
    make_home(mino.home, LIVE, other=OTHER)
    found = mino.run("history", "search", "Paris")
    assert (found.status, found.err) == (0, "")
    assert found.out.startswith("turn 1  20") and found.out.endswith(": In Paris.\n") and found.out.count("\n") == 1
    assert mino.run("history", "search", "Paris", "--session", "other").out.endswith(": Paris, or Rome.\n")
    assert mino.run("history", "search", "巴黎").out.endswith(": > 巴黎有多少人？\n")
    assert mino.run("history", "search", "Paris", "--session", "nope").status == 66


def test_every_conversation(mino: Program) -> None:
    make_home(mino.home, LIVE, other=OTHER, 空=b"", copy=completed(("x", "y")))
    lines = mino.run("history", "search", "--all", "-i", "paris").out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [["-", "turn 1"], ["other", "turn 1"]]
    values = judge(mino.run("history", "search", "--all", "--json", "Paris").out, "match.v1")
    assert [(each["session"], each["role"], each["line"]) for each in values] == [
        (None, "assistant", "In Paris."),
        ("other", "assistant", "Paris, or Rome."),
    ]
    nothing = mino.run("history", "search", "--all", "Berlin")
    assert (nothing.status, nothing.out, nothing.err) == (66, "", "mino: no line has 'Berlin'\n")


@pytest.mark.parametrize("words", [[""], ["-E", "("], ["a\nb"], []])
def test_a_bad_pattern_is_a_usage_mistake(mino: Program, words: list[str]) -> None:
    make_home(mino.home, LIVE)
    done = mino.run("history", "search", *words)
    assert (done.status, done.out) == (2, "")


def test_a_damaged_conversation_does_not_hide_the_others(mino: Program) -> None:
    home = make_home(mino.home, LIVE, a=OTHER + b"{]\n" + OTHER, b=OTHER[:-9], z=OTHER)
    (home / "saved" / "link.jsonl").symlink_to("z.jsonl")
    found = mino.run("history", "search", "--all", "Paris")
    assert found.status == 65
    assert [line.split("  ")[0] for line in found.out.splitlines()] == ["-", "a", "b", "z"]
    for why in ("a.jsonl' line 4", "b.jsonl' line 3", "link.jsonl' is a symbolic link"):
        assert why in found.err
    assert "hint: mino history recover --salvage --dry-run" in found.err


def test_a_conversation_in_use_is_searched_and_nobody_waits_for_the_reader_of_the_pipe(mino: Program) -> None:
    question = homes.ended(7, "b" * 32, "Paris at last?", "failed").split(b"\n")[0] + b"\n"
    home = make_home(mino.home, LIVE + question)
    with closing(lock_exclusive(f"{home}/sessions.lock", 0)):
        found = mino.run("history", "search", "Paris")
    assert found.status == 0 and found.out.count("\n") == 2 and "in use" in found.err
    make_home(mino.home / "2", completed(*((f"Paris {number} " + "字" * 100, "x") for number in range(2000))))
    process = mino.start("--home", f"{mino.home}/2", "history", "search", "Paris", stdout=subprocess.PIPE)
    time.sleep(1)  # the pipe is full, and nobody reads
    with closing(lock_exclusive(f"{mino.home}/2/sessions.lock", 0)):
        assert process.poll() is None
    assert finish(process).out.count("\n") == 2000


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_endless_expression_ends_by_a_signal_and_stops_no_writer(mino: Program, signum: signal.Signals) -> None:
    """It held the lock: every `ask` beside it ended with 75."""
    home = make_home(mino.home, completed(("a" * 40 + "!", "x")))
    (home / "sessions.lock").touch(0o600)
    process = mino.start("history", "search", "-E", "(a+)+$")
    wait_until(lambda: _is_busy(process.pid))
    with closing(lock_exclusive(f"{home}/sessions.lock", 0)):
        process.send_signal(signum)
        assert finish(process).status == -signum


def _is_busy(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11]) > os.sysconf("SC_CLK_TCK") // 2


def test_on_a_terminal_the_match_is_marked(mino: Program, tmp_path: Path) -> None:
    make_home(mino.home, completed(("x\x1b[2Jyx", "巴黎 x")))
    with Window(mino.command("history", "search", "x"), mino.environ, tmp_path) as window:
        assert window.wait_for_end() == 0
        assert "> x\\x1b[2Jyx\n" in window.text
        assert window.history.count("\x1b[1m\x1b[31mx") == 3
    with Window(mino.command("history", "search", "x"), {**mino.environ, "NO_COLOR": "1"}, tmp_path) as window:
        assert window.wait_for_end() == 0 and "\x1b[31m" not in window.history
    with Window(mino.command("history", "search", "x"), {**mino.environ, "TERM": "dumb"}, tmp_path) as window:
        assert window.wait_for_end() == 0 and "\x1b[31m" not in window.history


def test_a_pipe_gets_the_lines_as_they_are(mino: Program) -> None:
    line = "\x1b[2J巴黎\r" + "长" * 100_000
    make_home(mino.home, completed((f"a\n{line}\nb", "x")))
    out = mino.run("history", "search", "-i", "长", env={"TERM": "xterm"}).out
    assert out.endswith(f": > {line}\n") and out.count("\n") == 1


def test_on_a_terminal_the_pager_shows_many_matches(mino: Program, tmp_path: Path) -> None:
    make_home(mino.home, completed(*((f"问 {number}", "x") for number in range(40))))
    environ = {**mino.environ, "MINO_PAGER": "echo paged; cat"}
    with Window(mino.command("history", "search", "问"), environ, tmp_path) as window:
        assert window.wait_for_end() == 0
        assert "paged" in window.history and window.history.count("\x1b[31m问") == 40
    with Window(mino.command("history", "search", "问 39"), environ, tmp_path) as window:
        assert window.wait_for_end() == 0 and "paged" not in window.text


def test_a_reader_that_goes_ends_it(mino: Program) -> None:
    make_home(mino.home, completed(*((f"问 {number}", "x" * 1000) for number in range(2000))))
    ended = mino.run_in_shell('{ "$@"; echo "mino: $?" >&2; } | head -1', "history", "search", "x")
    assert ended.out.count("\n") == 1 and ended.err == f"mino: {128 + signal.SIGPIPE}\n"
