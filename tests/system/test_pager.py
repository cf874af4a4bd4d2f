"""`history show` that is longer than the screen: less as people have it, other pagers, and what they do to the end."""

import os
import re
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import homes
from tests.system.program import Program
from tests.system.window import Window

TURNS = 40
HEAD = re.compile(r"\x1b\[33mturn (\d+)  .*  completed  [0-9a-f]{32}\n\x1b\[39m")


@pytest.fixture
def long(mino: Program) -> Program:
    """The program with a conversation that is longer than a screen."""
    mino.write_session(homes.completed(*((f"问题 {number} \x1b[2J", f"A {number}") for number in range(1, TURNS + 1))))
    return mino


def show(mino: Program, place: Path, *words: str, env: Mapping[str, str] | None = None, rows: int = 24) -> Window:
    """`mino history show` in a window."""
    if not shutil.which("less"):
        pytest.skip("less is not installed")
    return Window(mino.command("history", "show", *words), {**mino.environ, **(env or {})}, place, rows=rows)


def whole(window: Window) -> list[str]:
    """The numbers of all turns that the window showed once the program has ended."""
    assert window.wait_for_end() == 0
    return re.findall(r"turn (\d+)  ", window.history)


ALL = [str(number) for number in range(1, TURNS + 1)]


@pytest.mark.parametrize("less", [None, "", "-i", "iM"])
def test_it_is_paged_and_heads_are_in_colour(long: Program, tmp_path: Path, less: str | None) -> None:
    with show(long, tmp_path, env={} if less is None else {"PAGER": "less", "LESS": less}) as window:
        window.wait_for(lambda text: text.startswith("turn 1  ") and text.count("\n") > 20)
        assert len(HEAD.findall(window.history)) >= 4
        assert "> 问题 1 \\x1b[2J" in window.text
        assert window.status is None
        window.press("G")
        window.wait_for(lambda text: f"turn {TURNS}  " in text)
        window.press("q")
        assert window.wait_for_end() == 0


@pytest.mark.parametrize("words", [["--json"], ["--context"]])
def test_json_is_paged_too(long: Program, tmp_path: Path, words: list[str]) -> None:
    with show(long, tmp_path, *words) as window:
        window.wait_for(lambda text: "问题 1 " in text and text.count("\n") > 20)
        assert window.status is None and "\x1b[33m" not in window.history
        window.press("q")
        assert window.wait_for_end() == 0


def test_what_fits_the_screen_is_printed(long: Program, tmp_path: Path) -> None:
    with show(long, tmp_path, "-n", "4", env={"PAGER": "echo paged; cat"}) as window:
        assert whole(window) == ["37", "38", "39", "40"] and "paged" not in window.history
    with show(long, tmp_path, "-n", "4", env={"PAGER": "echo paged; cat"}, rows=19) as window:
        assert whole(window) == ["37", "38", "39", "40"] and "paged" in window.history
    with show(long, tmp_path, "-n", "4", env={"PAGER": "echo paged; cat"}, rows=20) as window:
        assert whole(window) == ["37", "38", "39", "40"] and "paged" not in window.text


def test_long_lines_count_as_the_rows_that_they_take(mino: Program, tmp_path: Path) -> None:
    mino.write_session(homes.completed(("q", "宽" * 50 * 24)))
    with show(mino, tmp_path, env={"PAGER": "echo paged; cat"}) as window:
        assert whole(window) == ["1"] and "paged" in window.history


def test_the_lock_is_not_held_while_it_waits(long: Program, tmp_path: Path) -> None:
    with show(long, tmp_path) as window:
        window.wait_for(lambda text: text.startswith("turn 1  "))
        assert long.run("session", "save", "meanwhile").status == 0
        assert long.run("history", "forget", "1").status == 0
        window.press("q")
        assert window.wait_for_end() == 0


def test_the_pager_that_is_chosen(long: Program, tmp_path: Path) -> None:
    for env, pager in (
        ({"MINO_PAGER": "echo mine; cat", "PAGER": "echo other; cat"}, "mine"),
        ({"MINO_PAGER": "", "PAGER": "echo other; cat"}, "other"),
        ({"TERM": "dumb"}, None),  # less asks for a key there before it shows anything
    ):
        with show(long, tmp_path, env=env) as window:
            assert whole(window) == ALL
            assert [word for word in ("mine", "other") if word in window.history] == ([pager] if pager else [])
            assert ("\x1b[33m" in window.history) == ("TERM" not in env)


def test_without_colours(long: Program, tmp_path: Path) -> None:
    with show(long, tmp_path, env={"NO_COLOR": "1", "PAGER": "cat"}) as window:
        assert whole(window) == ALL and "\x1b" not in window.history
    with show(long, tmp_path, env={"NO_COLOR": "", "PAGER": "cat"}) as window:
        assert whole(window) == ALL and len(HEAD.findall(window.history)) == TURNS


def test_a_pipe_gets_no_pager_and_no_colour(long: Program, tmp_path: Path) -> None:
    out = long.run("history", "show", env={"PAGER": "echo paged", "TERM": "xterm"}).out
    assert out.count("turn ") == TURNS and "paged" not in out and "\x1b[33m" not in out and "\x1b[2J" in out
    words = ["sh", "-c", '"$@" | wc -l', "sh", *long.command("history", "show")]
    with Window(words, {**long.environ, "PAGER": "echo paged"}, tmp_path) as window:
        assert window.wait_for_end() == 0
        assert window.text.strip() == str(out.count("\n"))


@pytest.mark.parametrize("pager", ["no-such-pager -x", "/", "less-is-missing"])
def test_a_pager_that_is_missing_costs_nothing(long: Program, tmp_path: Path, pager: str) -> None:
    env = {"MINO_PAGER": pager}
    if pager == "less-is-missing":
        programs = tmp_path / "bin"
        programs.mkdir()
        (programs / "sh").symlink_to(shutil.which("sh") or "")
        env = {"PATH": str(programs)}
    with show(long, tmp_path, env=env) as window:
        assert whole(window) == ALL


@pytest.mark.parametrize("pager", ["head -1", "true", "false", "kill -9 $$", "exec <&-; sleep 0.2"])
def test_a_pager_that_ends_early_is_no_error(long: Program, tmp_path: Path, pager: str) -> None:
    long.write_session(homes.completed(*((f"q {number}", "A" * 9999) for number in range(TURNS))))
    with show(long, tmp_path, env={"PAGER": pager}) as window:
        assert window.wait_for_end() == 0 and "mino:" not in window.history


def test_ctrl_c_is_for_the_pager(long: Program, tmp_path: Path) -> None:
    with show(long, tmp_path) as window:
        window.wait_for(lambda text: text.startswith("turn 1  "))
        window.press("C-c")

        def is_at_the_end(text: str) -> bool:
            window.press("G")  # again and again: at Ctrl+C less drops what was typed
            return f"turn {TURNS}  " in text

        window.wait_for(is_at_the_end)
        assert window.status is None
        window.press("q")
        assert window.wait_for_end() == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_pager_too(long: Program, tmp_path: Path, signum: signal.Signals) -> None:
    with show(long, tmp_path) as window:
        window.wait_for(lambda text: text.startswith("turn 1  "))
        os.kill(window.pid, signum)
        assert window.wait_for_end() == -signum


def test_an_invalid_file_is_paged_and_then_told(long: Program, tmp_path: Path) -> None:
    long.write_session(long.session.read_bytes() + b"[]\n")
    with show(long, tmp_path) as window:
        window.wait_for(lambda text: text.startswith("turn 1  "))
        window.press("q")
        assert window.wait_for_end() == 65 and "mino: " in window.text
