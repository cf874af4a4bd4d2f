"""The sign of life in a real terminal: after two seconds, once a second, and gone when the answer comes."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import ScriptedServer, delta, ended, error, events
from tests.system.program import Program
from tests.system.window import Window

LINE = re.compile(r"mino: waiting for 模型 at http://127\.0\.0\.1:\d+/v1: (\d+) s")


@pytest.fixture
def slow(mino: Program) -> Iterator[threading.Event]:
    """A server that answers, in two pieces, when a test says so; `mino` asks it."""
    gate = threading.Event()
    reply = events(gate, delta("first "), delta("second"), ended())
    with ScriptedServer(error(503, "busy", headers={"retry-after-ms": "50"}), always=reply) as server:
        mino.environ |= {"OPENAI_BASE_URL": server.url, "MINO_MODEL": "模型"}
        yield gate


def seconds(text: str) -> int:
    found = LINE.search(text)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("words", [[], ["--json"], ["--no-stream"]])
def test_it_comes_and_goes_without_a_trace(
    mino: Program, slow: threading.Event, tmp_path: Path, words: list[str]
) -> None:
    with Window(mino.command("ask", *words, "q"), mino.environ, tmp_path) as window:
        first = window.wait_for(lambda text: seconds(text) >= 2)
        assert len(LINE.findall(first)) == 1 and "attempt 2 of 3" in first  # a notice is not drawn over
        later = window.wait_for(lambda text: seconds(text) > seconds(first))
        assert len(LINE.findall(later)) == 1
        slow.set()
        assert window.wait_for_end() == 0
        assert "waiting" not in window.history and "first second" in window.history


def test_beside_an_answer_that_goes_into_a_file(mino: Program, slow: threading.Event, tmp_path: Path) -> None:
    script = '"$@" > answer.txt'
    with Window(["sh", "-c", script, "sh", *mino.command("ask", "q")], mino.environ, tmp_path) as window:
        window.wait_for(lambda text: seconds(text) >= 2)
        slow.set()
        assert window.wait_for_end() == 0
        assert "waiting" not in window.history
    assert (tmp_path / "answer.txt").read_text() == "first second\n"


def test_in_a_chat_it_takes_the_place_of_the_label(mino: Program, slow: threading.Event, tmp_path: Path) -> None:
    with Window(mino.command("chat"), mino.environ, tmp_path) as window:
        window.wait_for("You>")
        window.write("q")
        window.press("Enter")
        window.wait_for(lambda text: seconds(text) >= 2)
        slow.set()
        window.wait_for(lambda text: text.endswith("You>") and "second" in text)
        assert "Assistant> first second" in window.text and "waiting" not in window.history
        window.press("C-d")
        assert window.wait_for_end() == 0


def test_ctrl_c_leaves_nothing_of_it(mino: Program, slow: threading.Event, tmp_path: Path) -> None:
    with Window(mino.command("ask", "q"), mino.environ, tmp_path) as window:
        window.wait_for(lambda text: seconds(text) >= 2)
        window.press("C-c")
        assert window.wait_for_end() == -2
        assert "waiting" not in window.history
    assert mino.types() == ["user_message", "cancelled"]
