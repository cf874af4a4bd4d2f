"""`mino` run hundreds of times: one process loads it, and forks for each run. Only the start of Python is saved."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.program import Program

_LOOP = """
import json, os, sys
import requests
import encodings.idna, requests.adapters, requests.utils
import mino.commands.ask, mino.commands.recover, mino.journal.schema
mino.journal.schema.are_valid([])  # makes the validator, which every child would otherwise make
from mino.__main__ import run

statuses = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
for line in sys.stdin:
    words = json.loads(line)
    if not os.fork():
        sys.argv = ["mino", *words]
        os._exit(run())
    print(os.waitstatus_to_exitcode(os.wait()[1]), file=statuses, flush=True)
"""


class Forks:
    """The process that forks; what the runs say on stdout and stderr is lost."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def run(self, *words: str) -> int:
        """Run `mino` with `words`; its exit status."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def forks(mino: Program) -> Iterator[Forks]:
    """The process that forks, in the home and the environment of `mino`."""
    process = subprocess.Popen(
        [sys.executable, "-c", _LOOP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=mino.environ,
        cwd=mino.home.parent,
    )
    with process:
        yield Forks(process)
        assert process.stdin
        process.stdin.close()
