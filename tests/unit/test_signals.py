"""Signals in real processes: they interrupt, or wait; the process dies by the one that came."""

import os
import signal
import subprocess
import sys

import pytest

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

START = """
import os, signal, sys
from mino import signals
from mino.errors import Interrupted
def send(signum=signal.{name}): os.kill(os.getpid(), signum)
def say(*words): print(*words, flush=True)
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)  # whatever the suite was started with
signals.install()
"""


def run(code: str, signum: signal.Signals = signal.SIGINT) -> "subprocess.CompletedProcess[str]":
    """What becomes of a process in which `send()` sends it `signum`."""
    return subprocess.run(
        [sys.executable, "-c", START.format(name=signum.name) + code],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_raises_and_the_process_dies_by_it(signum: signal.Signals) -> None:
    ended = run("try: send()\nexcept Interrupted as it: say('caught', it.signum); signals.die(it.signum)", signum)
    assert ended.stdout == f"caught {int(signum)}\n"
    assert ended.returncode == -signum


def test_no_exception_handler_of_a_library_swallows_it() -> None:
    ended = run("try:\n  try: send()\n  except Exception: say('swallowed')\nexcept Interrupted: say('through')")
    assert ended.stdout == "through\n"


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_waits_while_something_is_saved_and_interrupts_all_the_same(signum: signal.Signals) -> None:
    code = """
try:
    with signals.deferred():
        send()
        say("saved")
    say("went on")
except Interrupted as it:
    say("interrupted", it.signum)
"""
    assert run(code, signum).stdout == f"saved\ninterrupted {int(signum)}\n"


def test_a_storage_failure_outranks_a_signal() -> None:
    code = """
try:
    with signals.deferred():
        send()
        raise OSError("the disk is full")
except OSError as it:
    say(it)
"""
    assert run(code).stdout == "the disk is full\n"


def test_while_the_wire_is_read_a_signal_interrupts_at_once() -> None:
    code = """
try:
    with signals.deferred():
        try:
            with signals.immediate():
                send()
                say("went on")
        except Interrupted:
            send(signal.SIGTERM)
            say("saved as cancelled")
            raise
except Interrupted as it:
    say("interrupted", it.signum)
"""
    assert run(code).stdout == f"saved as cancelled\ninterrupted {int(signal.SIGINT)}\n"


def test_a_signal_that_came_before_the_wire_was_read_is_not_lost() -> None:
    code = """
try:
    with signals.deferred():
        send()
        with signals.immediate():
            say("asked")
except Interrupted as it:
    say("interrupted", it.signum)
"""
    assert run(code).stdout == f"interrupted {int(signal.SIGINT)}\n"


def test_the_first_signal_counts_and_a_second_does_not_interrupt_the_saving() -> None:
    code = """
try: send(signal.SIGTERM)
except Interrupted: pass
send(signal.SIGINT)
send(signal.SIGHUP)
say("saved")
"""
    ended = run(code)
    assert (ended.stdout, ended.returncode) == ("saved\n", 0)


def test_an_event_loop_is_woken_once_for_each_signal_and_only_within_its_block() -> None:
    code = """
try:
    with signals.deferred(lambda: say("woken", signals.is_pending())):
        with signals.deferred():
            send()
        say("又回来了 🔔")
        send(signal.SIGTERM)
except Interrupted as it:
    say("interrupted", it.signum)
send()
"""
    # What is deferred within the block is raised when it ends, and not when the inner block does.
    ended = run(code)
    assert ended.stdout == f"又回来了 🔔\nwoken True\ninterrupted {int(signal.SIGINT)}\n"
    assert ended.returncode == 0  # the process is on its way out, and a further signal waits for the end


def test_handlers_are_as_they_were_after_the_block() -> None:
    code = """
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
with signals.deferred():
    send(signal.SIGHUP)
    say("a SIGHUP that is ignored is not pending", not signals.is_pending())
say([signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before)
"""
    assert run(code).stdout == "a SIGHUP that is ignored is not pending True\nTrue\n"


@pytest.mark.parametrize("signum", SIGNALS)
def test_without_handlers_a_signal_ends_the_process_at_once(signum: signal.Signals) -> None:
    ended = run("signals.uninstall()\nsend()\nsay('went on')", signum)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("", "", -signum)


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(signum: signal.Signals) -> None:
    code = f"signal.signal({int(signum)}, signal.SIG_IGN)\nsignals.install()\nsend()\nsay('went on')"
    assert run(code, signum).stdout == "went on\n"


@pytest.mark.parametrize("signum", [*SIGNALS, signal.SIGPIPE])
def test_death_by_a_signal_that_is_blocked_or_ignored(signum: signal.Signals) -> None:
    code = f"""
signal.pthread_sigmask(signal.SIG_BLOCK, [{int(signum)}])
signal.signal({int(signum)}, signal.SIG_IGN)
signals.die({int(signum)})
"""
    assert run(code, signum).returncode == -signum
