"""Runs `mino` in copies of a home, killed by SIGKILL before its first step on disk, its second, and so on to the end.

    python -m tests.system.crashing HOME PLACE WORD…

A step is a call that creates, writes, syncs, renames, removes or cuts; a write is done by half first. The copy that was
killed before step 12 is PLACE/12, the same home after the command was run in it once more is PLACE/12-again, and the
one that no kill came to is PLACE/whole. On stdout: the exit status of each second run, one a line. (It forks for each
run, which is ten times quicker than to start Python; `undo` stands for what `/undo` does in `mino chat`.)
"""

import importlib
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mino import __main__ as program
from mino.home import Home
from mino.journal import schema
from mino.sessions import switch
from mino.sessions.conversation import open_conversation

STEPS = ("open", "write", "fsync", "rename", "unlink", "mkdir", "ftruncate")


def run(home: str, words: Sequence[str], kill_at: int | None) -> int:
    """Run `mino` with `words` in a child process; its exit status, or the negative number of the signal."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 99
    try:
        os.environ["MINO_HOME"] = home
        sys.argv = ["mino", *words]
        for fd in (1, 2):
            os.dup2(os.open(os.path.join(os.path.dirname(home), "output"), os.O_WRONLY | os.O_CREAT | os.O_APPEND), fd)
        os.fsync = lambda fd: None  # a step like others, but it matters to a power cut and not to a kill; it is slow
        if kill_at:
            kill(kill_at)
        status = undo(home) if words == ["undo"] else program.run()
    finally:
        os._exit(status)


def kill(at: int) -> None:
    """From now on, die at the step number `at`."""
    count = itertools.count(1)

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if changes_disk(step.__name__, *arguments[:2]) and next(count) == at:
                if step.__name__ == "write":
                    step(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return step(*arguments, **named)

        return call

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


def changes_disk(step: str, what: Any, how: Any = None) -> bool:
    """Whether this step can change anything on disk; to die before another is to die after the last that did."""
    if step == "open":
        return bool(how & os.O_CREAT)
    return step != "write" or what > 2


def undo(home: str) -> int:
    """What `/undo` does."""
    with open_conversation(Home(home, is_default=False), None, 0, print) as conversation:
        switch.undo(conversation)
    return 0


def main(base: str, place: str, words: Sequence[str]) -> None:
    """See the top of this file."""
    # What is loaded here need not be loaded by every child.
    schema.are_valid([])
    for module in ("commands.session", "commands.forget", "commands.ask", "commands.compact", "responses.post"):
        importlib.import_module(f"mino.{module}")
    for number in itertools.count(1):
        home = os.path.join(place, str(number))
        shutil.copytree(base, home, symlinks=True)
        status = run(home, words, number)
        if status != -signal.SIGKILL:
            os.rename(home, os.path.join(place, "whole"))
            sys.stdout.write(f"{status}\n")
            return
        again = f"{home}-again"
        shutil.copytree(home, again, symlinks=True)
        sys.stdout.write(f"{run(again, words, None)}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
