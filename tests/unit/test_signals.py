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
signals.catch()
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
    with signals.held():
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
    with signals.held():
        send()
        raise OSError("the disk is full")
except OSError as it:
    say(it)
"""
    assert run(code).stdout == "the disk is full\n"


def test_while_the_wire_is_read_a_signal_interrupts_at_once() -> None:
    code = """
try:
    with signals.held():
        try:
            with signals.delivered():
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
    with signals.held():
        send()
        with signals.delivered():
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


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(signum: signal.Signals) -> None:
    code = f"signal.signal({int(signum)}, signal.SIG_IGN)\nsignals.catch()\nsend()\nsay('went on')"
    assert run(code, signum).stdout == "went on\n"


@pytest.mark.parametrize("signum", [*SIGNALS, signal.SIGPIPE])
def test_death_by_a_signal_that_is_blocked_or_ignored(signum: signal.Signals) -> None:
    code = f"""
signal.pthread_sigmask(signal.SIG_BLOCK, [{int(signum)}])
signal.signal({int(signum)}, signal.SIG_IGN)
signals.die({int(signum)})
"""
    assert run(code, signum).returncode == -signum
