"""What surrounds Mino: a process that is stopped, no descriptors, threads or memory, a broken library."""

import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from tests.server import Reply, ScriptedServer, answer_events, completed, error, events
from tests.system.program import Program, finish

TIMEOUT, STOPPED = 0.6, 1.0  # seconds


@pytest.mark.parametrize(
    ("reply", "status", "told"),
    [
        (events(*answer_events("hi")), 0, ""),
        (completed("hi"), 0, ""),
        (error(400, "not now"), 69, "400: not now"),
    ],
    ids=["stream", "JSON", "error"],
)
def test_what_came_while_it_was_stopped_counts(mino: Program, reply: Reply, status: int, told: str) -> None:
    gate = threading.Event()
    with ScriptedServer(replace(reply, before=[gate])) as server:
        process = mino.start("ask", "--timeout", str(TIMEOUT), "--retries", "0", "What?", server=server)
        server.wait_for_requests(1)
        os.kill(process.pid, signal.SIGSTOP)
        gate.set()
        time.sleep(STOPPED)
        os.kill(process.pid, signal.SIGCONT)
        ended = finish(process)
    assert (ended.status, ended.out) == (status, "hi\n" if not status else ""), ended.err
    assert told in ended.err


def test_silence_while_it_was_stopped_is_silence(mino: Program) -> None:
    with ScriptedServer(Reply(before=[30.0])) as server:
        process = mino.start("ask", "--timeout", str(TIMEOUT), "What?", server=server)
        server.wait_for_requests(1)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(STOPPED)
        os.kill(process.pid, signal.SIGCONT)
        ended = finish(process)
    assert ended.status == 69 and "no data from" in ended.err
