"""The process: what an import of Mino leaves as it was, what `set_up` changes, and how the process ends."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

# What a process has that belongs to all of its code. The filters as text: a category is a class of any module.
STATE = """
import gc, json, os, signal, sys, warnings

def state():
    return {
        "signals": {str(int(each)): str(signal.getsignal(each)) for each in signal.valid_signals()},
        "threshold": gc.get_threshold(),
        "garbage": gc.isenabled(),
        "filters": [str(each) for each in warnings.filters],
        "digits": sys.get_int_max_str_digits(),
        "recursion": sys.getrecursionlimit(),
        "environ": dict(os.environ),
        "folder": os.getcwd(),
    }

def tell(**words):
    print(json.dumps(words))
"""


def run(code: str, *options: str, **environ: str) -> Any:
    """What `code` tells in a new process of Python with these `options`."""
    ended = subprocess.run(
        [sys.executable, *options, "-c", STATE + code],
        capture_output=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "1", **environ},
    )
    assert (ended.returncode, ended.stderr) == (0, b""), ended.stderr.decode()
    return json.loads(ended.stdout)


def test_importing_mino_changes_nothing_in_the_process() -> None:
    code = """
import importlib, pkgutil
import prompt_toolkit  # what libraries do when they are imported is not Mino's
before = state()
import mino
found = ["mino", *(each.name for each in pkgutil.walk_packages(mino.__path__, "mino."))]
changed = {}
for name in found:
    importlib.import_module(name)
    if state() != before:
        changed[name], before = state(), state()
tell(found=found, changed=changed)
"""
    told = run(code, MINO_HOME="/家")
    assert told["changed"] == {}
    names = {"mino.__main__", "mino.cli", "mino.signals", "mino.terminal.editor", "mino.responses.local", "mino.turn"}
    assert names < set(told["found"]) and len(told["found"]) > 50


def set_up(before: str = "", *options: str, **environ: str) -> Any:
    """The state of a process in which `set_up` was called, and once more, after the code `before`."""
    code = f"""
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the suite was started with
{before}
from mino.__main__ import set_up
start = state()
set_up()
once = state()
set_up()
changed = [key for key in start if once[key] != start[key]]
tell(start=start, once=once, changed=changed, handlers=[key for key in once["signals"]
    if once["signals"][key] != start["signals"][key]], modules=list(sys.modules))
"""
    return run(code, *options, **environ)


def test_the_process_is_set_up_for_a_command() -> None:
    told = set_up()
    assert told["changed"] == ["signals", "threshold", "filters"]
    assert told["handlers"] == [str(int(signal.SIGINT))]
    assert told["once"]["signals"][str(int(signal.SIGINT))] == str(signal.SIG_DFL)
    assert told["once"]["threshold"][0] == 200_000 and told["once"]["garbage"]
    assert told["once"]["filters"][0].startswith("('ignore', None, <class 'Warning'>")
    # Before anything else is imported.
    modules = {name for name in told["modules"] if name.startswith(("mino.", "click"))}
    assert modules == {"mino.__main__"}


@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "signal.SIG_DFL", "lambda signum, frame: None"])
def test_a_handler_of_somebody_else_stays(handler: str) -> None:
    told = set_up(f"signal.signal(signal.SIGINT, {handler})")
    assert told["handlers"] == [] and told["changed"] == ["threshold", "filters"]


@pytest.mark.parametrize("options", [("-W", "error"), ("-W", "default::ResourceWarning")])
def test_whoever_asks_for_warnings_gets_them(options: tuple[str, str]) -> None:
    told = set_up("", *options)
    assert told["changed"] == ["signals", "threshold"]


@pytest.mark.parametrize(
    ("given", "digits"),
    [("640", sys.int_info.default_max_str_digits), ("4300", 4300), ("0", 0), ("100000", 100_000)],
)
def test_a_record_can_be_read_whatever_the_environment_says_of_long_integers(given: str, digits: int) -> None:
    told = set_up(PYTHONINTMAXSTRDIGITS=given)
    assert told["start"]["digits"] == int(given)
    assert told["once"]["digits"] == digits >= 4000 or digits == 0  # 0 means: no limit


def test_a_warning_of_a_library_is_not_shown_to_a_user() -> None:
    code = """
from mino.__main__ import set_up
set_up()
warnings.warn("请升级", DeprecationWarning)
warnings.warn("请升级", UserWarning)
tell(silent=True)
"""
    assert run(code) == {"silent": True}


@pytest.mark.parametrize(
    ("words", "status"),
    [(["--version"], 0), (["history", "show", "-n", "x"], 2), (["history", "show", "--turn", "没有"], 66)],
)
@pytest.mark.parametrize("module", [True, False])
def test_the_exit_status_of_a_command_is_that_of_the_process(words: list[str], status: int, module: bool) -> None:
    options = ["-m", "mino"] if module else ["-c", "from mino.__main__ import main; main()"]
    ended = subprocess.run(
        [sys.executable, *options, *words],
        capture_output=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "MINO_HOME": "/没有"},
    )
    assert ended.returncode == status
    assert (b"mino" in ended.stdout) is (status == 0) and ended.stderr.startswith(b"mino: ") is (status != 0)


@pytest.mark.parametrize(
    ("failure", "signum"),
    [
        ("ReaderGone()", signal.SIGPIPE),
        *((f"Interrupted({int(each)})", each) for each in (signal.SIGINT, signal.SIGHUP)),
    ],
)
def test_the_process_dies_by_the_signal_that_ended_its_work(failure: str, signum: signal.Signals) -> None:
    code = f"""
from mino import __main__, errors
from mino.errors import Interrupted, ReaderGone
def fail():
    raise {failure}
__main__._run = fail
__main__.main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signum, b"", b"")


def test_a_closed_standard_descriptor_is_taken_before_a_file_can_get_its_number() -> None:
    code = """
from mino.__main__ import _occupy_standard_descriptors
kept = os.dup(1)
os.close(0), os.close(1)
_occupy_standard_descriptors()
numbers = [os.open(os.devnull, os.O_RDONLY) > kept, os.read(0, 1) == b""]
try:
    os.write(1, b"x")
except OSError as error:
    numbers.append(error.strerror)
os.dup2(kept, 1)
tell(numbers=numbers)
"""
    assert run(code) == {"numbers": [True, True, "Bad file descriptor"]}
