"""What surrounds Mino: a process that is stopped, no descriptors, threads or memory, a broken library."""

import os
import resource
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.server import (
    CERTIFICATE,
    Reply,
    ScriptedServer,
    answer_events,
    completed,
    error,
    events,
    json_reply,
    message,
)
from tests.system.program import Program, Word, finish, two_turns

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


def under(*limits: tuple[int, int]) -> list[Word]:
    """A prefix that runs `mino` under these limits of `resource`."""
    code = f"""if True:
        import os, resource, sys
        for kind, number in {limits!r}:
            resource.setrlimit(kind, (number, number))
        os.execv(sys.argv[1], sys.argv[1:])"""
    return [sys.executable, "-ISc", code]


@pytest.mark.parametrize(
    ("library", "text", "said"),
    [
        ("requests", "raise RuntimeError('no\\nluck')", "RuntimeError: no luck"),
        ("requests", "raise SystemExit(3)", "SystemExit: 3"),
        ("requests", "import no_such_library", "No module named 'no_such_library'"),
        ("requests", "def f(:", "SyntaxError"),
        ("requests", "one = 1", "'requests' is not a package"),
        ("requests", "raise OSError(5, 'Input/output error')", "Input/output error"),
        ("urllib3", "one = 1", "'urllib3' is not a package"),
    ],
)
def test_broken_library_is_not_the_servers_fault(
    mino: Program, tmp_path: Path, library: str, text: str, said: str
) -> None:
    place = tmp_path / "path"
    place.mkdir()
    (place / f"{library}.py").write_text(text)
    with ScriptedServer(always=completed("hi")) as server:
        began = time.monotonic()
        ended = mino.run("ask", "q", server=server, env={"PYTHONPATH": str(place)})
        assert time.monotonic() - began < 20  # three attempts that nobody answers would take 90
    assert ended.status == 78 and server.connections == 0
    assert "the library requests in '" in ended.err and said in ended.err and "server" not in ended.err
    assert (str(place) in ended.err) == (library == "requests")
    assert mino.types() == ["user_message", "failed"]


@pytest.mark.parametrize("words", [["ask", "q"], ["history", "show"]])
def test_broken_library_at_the_start_is_no_defect(mino: Program, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "orjson.py").write_text("import no_such_library")
    mino.write_session(two_turns())
    ended = mino.run(*words, env={"PYTHONPATH": str(tmp_path)})
    assert ended.status == 78
    assert ended.err.startswith("mino: a library cannot be loaded: No module named 'no_such_library'\nhint: ")


@pytest.mark.parametrize("tls", [False, True])
def test_descriptors_that_run_out_are_not_the_servers_fault(mino: Program, tls: bool) -> None:
    mino.run("session", "new")
    statuses = []
    with ScriptedServer(always=completed("hi"), tls=tls) as server:
        for number in range(5, 13):
            before = server.connections
            limit = under((resource.RLIMIT_NOFILE, number))
            ended = mino.run("ask", "q", server=server, prefix=limit, env={"REQUESTS_CA_BUNDLE": str(CERTIFICATE)})
            statuses.append(ended.status)
            assert server.connections - before <= 1, "tried again"
            if ended.status != 0:
                assert ended.status == 74 and "Too many open files" in ended.err and "server" not in ended.err
    assert statuses[0] == 74 and statuses[-1] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="a thread's stack is of the size of RLIMIT_STACK there alone")
def test_thread_that_cannot_be_started_is_not_a_defect(mino: Program) -> None:
    limit = under((resource.RLIMIT_AS, 2 << 30), (resource.RLIMIT_STACK, 4 << 30))
    with ScriptedServer(always=completed("hi")) as server:
        ended = mino.run("ask", "q", server=server, prefix=limit)
    assert ended.status == 74 and "mino: no thread can be started" in ended.err and server.connections == 0
    assert mino.types() == ["user_message", "failed"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() == 0, reason="root has no limit of processes")
def test_limit_of_processes_is_not_a_defect(mino: Program) -> None:
    with ScriptedServer(always=completed("hi")) as server:
        ended = mino.run("ask", "q", server=server, prefix=under((resource.RLIMIT_NPROC, 1)))
    assert ended.status == 74 and "mino: no thread can be started" in ended.err and server.connections == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep RLIMIT_AS")
def test_memory_that_runs_out_is_not_a_defect(mino: Program) -> None:
    whole = json_reply({"status": "completed", "output": [message("x" * (96 << 20))]})
    with ScriptedServer(whole) as server:
        ended = mino.run("ask", "q", server=server, prefix=under((resource.RLIMIT_AS, 192 << 20)))
    assert ended.status == 74 and ended.err.startswith("mino: not enough memory\nhint: ")
    assert len(server.requests) == 1
    assert mino.types() == ["user_message", "failed"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep RLIMIT_AS")
@pytest.mark.parametrize("megabytes", range(22, 46, 4))
def test_every_limit_of_memory_is_reported(mino: Program, megabytes: int) -> None:
    with ScriptedServer(always=completed("hi")) as server:
        process = mino.start("ask", "q", server=server, prefix=under((resource.RLIMIT_AS, megabytes << 20)))
        err = process.communicate(timeout=60)[1].decode()  # unchecked: hashlib adds lines of its own
    assert process.returncode in (0, 74), err  # not SIGSEGV; how much Python itself needs differs
    assert "attempt" not in err and "server" not in err
    assert process.returncode == 0 or "ulimit" in err
