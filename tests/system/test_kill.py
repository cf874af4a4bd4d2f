"""kill -9 at many moments of a turn: the question alone is on disk or the whole turn, and the next one goes on."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.server import Reply, ScriptedServer, answer_events, completed, events, sse, wait_until
from tests.system.program import BOTH, CASES, PATIENCE, ROOT, Program, load, read_until, sent_texts

ANSWER = "巴黎 is the capital 🗼"
EVENTS = answer_events(ANSWER)
TURN = ["user_message", "assistant_message", "completed"]


def kill(process: "subprocess.Popen[bytes]") -> None:
    """kill -9, and wait until it is dead."""
    process.kill()
    process.wait(PATIENCE)
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def check_recovery(mino: Program, server: ScriptedServer) -> None:
    """The next question is asked without the killed turn, which is ended as interrupted."""
    assert mino.types() == ["user_message"]
    answer = mino.run("ask", "again", server=server)
    assert (answer.status, answer.out) == (0, "ok\n") and "as interrupted" in answer.err
    assert mino.types() == ["user_message", "interrupted", *TURN]
    assert sent_texts(server.requests[-1].json) == ["again"]


@BOTH
@pytest.mark.parametrize("count", range(len(EVENTS)))
def test_killed_after_some_events(mino: Program, count: int) -> None:
    gate = threading.Event()
    with ScriptedServer(events(*EVENTS[:count], gate), completed("ok")) as server:
        process = mino.start("ask", "q", server=server)
        server.wait_for_requests(1)
        shown = "".join(event.get("delta", "") for event in EVENTS[:count])
        if shown:
            read_until(process.stdout, shown.encode())
        kill(process)
        gate.set()
        check_recovery(mino, server)


@BOTH
def test_killed_before_the_head_of_the_answer(mino: Program) -> None:
    gate = threading.Event()
    with ScriptedServer(Reply(before=[gate]), completed("ok")) as server:
        process = mino.start("ask", "q", server=server)
        server.wait_for_requests(1)
        kill(process)
        assert server.requests[0].hung_up.wait(PATIENCE)  # the connection is closed with the process
        check_recovery(mino, server)


@BOTH
@pytest.mark.parametrize("cut", [1, 20, 60])
def test_killed_inside_an_event(mino: Program, cut: int) -> None:
    gate = threading.Event()
    stream = b"".join(sse(*EVENTS))
    reply = Reply([stream[:-cut], gate], 200, {"content-type": "text/event-stream"})
    with ScriptedServer(reply, completed("ok")) as server:
        process = mino.start("ask", "q", server=server)
        read_until(process.stdout, ANSWER.encode())
        kill(process)
        gate.set()
        check_recovery(mino, server)


@BOTH
@pytest.mark.parametrize("round", range(4))
def test_killed_around_the_end(mino: Program, round: int) -> None:
    """The end is on its way: the whole turn is there or only its question, and a status of 0 means the former."""
    with ScriptedServer(completed(ANSWER), always=completed("ok")) as server:
        process = mino.start("ask", "q", server=server)
        read_until(process.stdout, ANSWER.encode())
        if round % 2:
            wait_until(lambda: b"turn_end" in mino.session.read_bytes())
        kill(process)
        assert mino.types() == TURN or (mino.types() == ["user_message"] and process.returncode == -9 and not round % 2)
        texts = ["q", ANSWER] if len(mino.types()) == 3 else []
        assert mino.run("ask", "again", server=server).status == 0
    assert sent_texts(server.requests[-1].json) == [*texts, "again"]


@pytest.mark.parametrize(
    ("mino", "case"),
    [
        *((None, case) for case in (None, "empty", "good-two-turns", "torn-last-newline", "nul-tail-with-newline")),
        *(("计划 🌱", case) for case in (None, "torn-last-newline")),
    ],
    indirect=["mino"],
)
def test_killed_before_each_step_on_disk(
    mino: Program, server: ScriptedServer, tmp_path: Path, case: str | None
) -> None:
    data = b""
    if case:
        data = (CASES / f"{case}.jsonl").read_bytes()
        mino.write_session(data)
    else:
        mino.home.mkdir(mode=0o700)
    place = tmp_path / "crashed"
    place.mkdir()
    words = ["ask", "--base-url", server.url, "now", *(["--session", mino.name] if mino.name else [])]
    command = [sys.executable, "-m", "tests.system.crashing", str(mino.home), str(place), *words]
    done = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    statuses = [int(line) for line in done.stdout.split()]
    assert len(statuses) > 4 and set(statuses) == {0}, (place / "output").read_text()

    context = [turn.user for turn in load(data)[0] if turn.status == "completed"]
    for request in server.requests:
        # A killed run may have saved its whole turn before it died; half a turn is never sent.
        assert sent_texts(request.json)[::2] in ([*context, "now"], [*context, "now", "now"])
    for number in range(1, len(statuses)):
        check_original_is_there(Program(place / str(number), name=mino.name), data)
        again = Program(place / f"{number}-again", name=mino.name)
        turns, report = again.load()
        assert report.state == "clean" and turns[-1].user == "now" and turns[-1].status == "completed"
        check_original_is_there(again, data)


def check_original_is_there(mino: Program, data: bytes) -> None:
    """No byte was lost: the file begins with what was in it, or a recovery copy has it all."""
    files = [path.read_bytes() for path in mino.files()]
    assert not data or any(content.startswith(data) for content in files)
