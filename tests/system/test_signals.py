"""SIGINT, SIGTERM, SIGHUP and a reader that goes: a cancelled turn on disk, and death by that signal at once."""

import fcntl
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.server import Reply, ScriptedServer, answer_events, completed, delta, error, events, wait_until
from tests.system.prefixes import traced
from tests.system.program import BOTH, Ended, Program, Word, finish, read_until, unread

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
CANCELLED = ["user_message", "cancelled"]
TURN = ["user_message", "assistant_message", "completed"]
Process = subprocess.Popen[bytes]
Moment = Callable[[Program], AbstractContextManager[Process]]


def interrupt(process: Process, signum: int) -> Ended:
    """Send the signal; the process must be dead by it within a second, or two on a busy machine."""
    sent = time.monotonic()
    process.send_signal(signum)
    ended = finish(process)
    assert time.monotonic() - sent < 2 and ended.status == -signum, ended
    return ended


@contextmanager
def connecting(mino: Program) -> Iterator[Process]:
    """A process that waits for a connection that nobody accepts."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        # The queue has one place; what is more gets no answer at all, as from a host behind a firewall.
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield (process := mino.start("ask", "--base-url", url, "q"))
        process.kill()
        for filler in fillers:
            filler.close()


@contextmanager
def unanswered(mino: Program) -> Iterator[Process]:
    """A process that waits for the head of an answer."""
    gate = threading.Event()
    with ScriptedServer(Reply(before=[gate])) as server:
        process = mino.start("ask", "q", server=server)
        server.wait_for_requests(1)
        yield process
        assert server.requests[0].hung_up.wait(5)
        gate.set()


@contextmanager
def reading(mino: Program) -> Iterator[Process]:
    """A process in the middle of the text."""
    gate = threading.Event()
    with ScriptedServer(events(*answer_events("half an answer 半")[:-1], gate)) as server:
        process = mino.start("ask", "q", server=server)
        read_until(process.stdout, "半".encode())
        yield process
        assert server.requests[0].hung_up.wait(5)
        gate.set()


@contextmanager
def retrying(mino: Program) -> Iterator[Process]:
    """A process that waits a minute before it tries again."""
    with ScriptedServer(error(503, "busy", headers={"retry-after": "60"})) as server:
        process = mino.start("ask", "q", server=server)
        server.wait_for_requests(1)
        yield process
        assert len(server.requests) == 1


@BOTH
@pytest.mark.parametrize("signum", SIGNALS)
@pytest.mark.parametrize("moment", [connecting, unanswered, reading, retrying])
def test_a_signal_cancels_the_turn(mino: Program, moment: Moment, signum: int) -> None:
    with moment(mino) as process:
        wait_until(lambda: bool(mino.files()) and mino.session.stat().st_size > 0)
        ended = interrupt(process, signum)
    assert ended.err == "" and ended.out == ("\n" if moment is reading else "")
    assert mino.types() == CANCELLED
    assert mino.run("history", "verify").status == 0


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_reader_that_takes_nothing_does_not_hold_up_the_end(mino: Program, signum: int) -> None:
    with ScriptedServer(events(*[delta("长 text " * 1000)] * 30)) as server:
        process = mino.start("ask", "q", server=server)
        assert process.stdout
        pipe = process.stdout.fileno()
        wait_until(lambda: unread(pipe) > 48_000)  # full: of a pipe's sixteen pages some stay half empty
        process.send_signal(signum)
        assert process.wait(5) == -signum  # the newline after the part that came would wait for ever
    assert mino.types() == CANCELLED


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_reader_that_goes_while_nothing_comes_ends_the_wait(mino: Program, words: list[str]) -> None:
    gate = threading.Event()
    with ScriptedServer(Reply(before=[gate])) as server:
        process = mino.start("ask", *words, "q", server=server)
        server.wait_for_requests(1)
        assert process.stdout
        process.stdout.close()
        assert process.wait(5) == -signal.SIGPIPE
        assert server.requests[0].hung_up.wait(5)
        gate.set()
    assert mino.types() == CANCELLED


def test_head_ends_the_answer_after_its_first_line(mino: Program, tmp_path: Path) -> None:
    gate = threading.Event()
    with ScriptedServer(events(*answer_events("first\nsecond\nthird")[:-1], gate)) as server:
        script = '{ "$@"; echo $? >"$0"; } | head -n 1'
        ended = mino.run("ask", "q", server=server, prefix=["sh", "-c", script, str(tmp_path / "status")])
        gate.set()
    assert (ended.out, ended.err) == ("first\n", "")
    assert int((tmp_path / "status").read_text()) == 128 + signal.SIGPIPE
    assert mino.types() == CANCELLED


@BOTH
def test_a_shell_loop_stops_with_the_signal(mino: Program) -> None:
    gate = threading.Event()
    with ScriptedServer(always=Reply(before=[gate])) as server:
        loop = ["sh", "-c", 'for n in 1 2 3; do "$@" $n; done', "sh"]
        process = mino.start("ask", server=server, prefix=loop)
        server.wait_for_requests(1)
        [child] = children(process.pid)
        os.kill(child, signal.SIGINT)
        os.kill(process.pid, signal.SIGINT)  # as a terminal does: to all of the group
        assert finish(process).status == -signal.SIGINT
        gate.set()
        assert len(server.requests) == 1
    assert mino.types() == CANCELLED


def children(pid: int) -> list[int]:
    """The processes that `pid` started."""
    found = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = (line.split() for line in found.splitlines())
    return [int(child) for child, parent in pairs if int(parent) == pid]


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_that_was_ignored_stays_ignored(mino: Program, signum: signal.Signals) -> None:
    gate = threading.Event()
    *pieces, end = answer_events("回答")
    with ScriptedServer(events(*pieces, gate, end)) as server:
        ignoring = ["sh", "-c", f'trap "" {signum.name.removeprefix("SIG")}; exec "$@"', "sh"]
        process = mino.start("ask", "q", server=server, prefix=ignoring)
        read_until(process.stdout, "回答".encode())
        process.send_signal(signum)
        gate.set()
        ended = finish(process)
    assert (ended.status, ended.out) == (0, "\n") and mino.types() == TURN


def test_nohup_keeps_a_question_running(mino: Program, server: ScriptedServer) -> None:
    ended = mino.run("ask", "q", prefix=["nohup"])
    assert (ended.status, ended.out) == (0, "巴黎 🗼\n")


def slow_last_save() -> list[Word]:
    """A prefix under which the syncs of a first start take half a second from the sixth on: the turn's end is one."""
    return traced("-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:delay_enter=500000:when=6+")


@BOTH
@pytest.mark.parametrize(
    ("reply", "types"), [(completed("回答"), TURN), (error(400, "no"), ["user_message", "failed"])]
)
def test_a_signal_during_the_last_save_waits_for_it(mino: Program, reply: Reply, types: list[str]) -> None:
    with ScriptedServer(reply) as server:
        process = mino.start("ask", "q", server=server, prefix=slow_last_save())
        wait_until(lambda: bool(mino.files()) and b"turn_end" in mino.session.read_bytes())
        [child] = children(process.pid)
        os.kill(child, signal.SIGTERM)
        ended = finish(process)
    assert ended.status == -signal.SIGTERM  # strace dies as its child did
    assert mino.types() == types


@BOTH
def test_a_second_signal_does_not_stop_the_saving_of_the_first(mino: Program) -> None:
    gate = threading.Event()
    with ScriptedServer(events(*answer_events("text 文")[:-1], gate)) as server:
        process = mino.start("ask", "q", server=server, prefix=slow_last_save())
        read_until(process.stdout, "文".encode())
        [child] = children(process.pid)
        os.kill(child, signal.SIGINT)
        wait_until(lambda: b"cancelled" in mino.session.read_bytes())
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.kill(child, signum)
        ended = finish(process)
        gate.set()
    assert ended.status == -signal.SIGINT and mino.types() == CANCELLED


def test_a_signal_while_the_question_is_read(mino: Program) -> None:
    process = mino.start("ask", stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(b"half a questi")
    process.stdin.flush()
    stdin = process.stdin.fileno()
    wait_until(lambda: unread(stdin) == 0)  # it has taken the bytes, and waits for more
    assert interrupt(process, signal.SIGINT).err == ""
    assert not mino.home.exists()


@BOTH
def test_a_signal_while_another_process_is_waited_for(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(b"")
    with mino.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = mino.start("ask", "--wait", "60", "q")
        read_until(process.stderr, b"waiting up to 60 seconds")
        interrupt(process, signal.SIGTERM)
    assert not server.connections and mino.session.read_bytes() == b""
