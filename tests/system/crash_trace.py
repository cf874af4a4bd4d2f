"""Runs `mino` under strace, and reads from its log what the process did to a disk, in order.

    python -m tests.system.crash_trace JOBS

JOBS is a file of JSON: a list of jobs. Each runs in a fork of this process, because that is ten times quicker than to
start Python. A call that fails stands in the log before each. On stdout: the exit status of each, one a line.
"""

import contextlib
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.system.crash_disk import Event
from tests.system.program import ROOT

CALLS = (
    "open,openat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,symlink,truncate,ftruncate,"
    "write,pwrite64,writev,pwritev,fsync,fdatasync,copy_file_range,fallocate,close,connect"
)
MARK = "/nonexistent/job/"
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)")
_BEGUN = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Job(NamedTuple):
    """One run of `mino`: the root of its disk, its home below that, its words and its standard input."""

    root: str
    home: str
    words: Sequence[str]
    stdin: str = ""


class Run(NamedTuple):
    """What became of it: the exit status, what it printed, and what it did to its disk."""

    status: int
    output: str
    events: list[Event]


def trace(jobs: Sequence[Job], place: Path, url: str) -> list[Run]:
    """Run `jobs`, whose questions the server at `url` answers, one after another; files go into `place`."""
    (place / "jobs").write_text(json.dumps(jobs))
    command = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-xx",
        "-s",
        "10000000",
        "-o",
        str(place / "log"),
        "-e",
        f"trace={CALLS}",
    ]
    environ = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT), "HOME": str(place)}
    done = subprocess.run(
        [*command, sys.executable, "-m", "tests.system.crash_trace", str(place / "jobs")],
        cwd=ROOT,
        env=environ | {"OPENAI_BASE_URL": url},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    statuses = [int(line) for line in done.stdout.split()]
    logs = _split((place / "log").read_text().splitlines())
    assert len(statuses) == len(logs) == len(jobs)
    outputs = [Path(f"{job.root}.output").read_text() for job in jobs]
    return [
        Run(status, output, [event for call in log for event in _read(job.root, *call)])
        for job, status, output, log in zip(jobs, statuses, outputs, logs, strict=True)
    ]


def _split(lines: Sequence[str]) -> list[list[tuple[str, str, int]]]:
    """The calls that succeeded, by job; one that another thread interrupted stands on two lines of the log."""
    jobs: list[list[tuple[str, str, int]]] = []
    begun: dict[str, str] = {}
    driver = lines[0].split()[0]
    for line in lines:
        if unfinished := _BEGUN.match(line):
            begun[unfinished[1]] = unfinished[2]
            continue
        if resumed := _RESUMED.match(line):
            line = f"{resumed[1]} {begun.pop(resumed[1])}{resumed[2]}"
        call = _CALL.match(line)
        if call and call[1] == driver:
            if call[2] == "mkdir" and _strings(call[3])[0].decode().startswith(MARK):
                jobs.append([])
        elif call and jobs and (int(call[4]) >= 0 or call[2] == "connect"):
            jobs[-1].append((call[2], call[3], int(call[4])))
    return jobs


def _strings(arguments: str) -> list[bytes]:
    return [bytes.fromhex(text.replace("\\x", "")) for text in _STRING.findall(arguments)]


def _read(root: str, call: str, arguments: str, result: int) -> list[Event]:
    """What a call does to the disk below `root`: one event, or none."""
    strings = _strings(arguments)
    first = arguments.partition(",")[0]
    if call == "connect":
        return [Event("send")] if "AF_INET" in arguments else []
    if call in ("open", "openat"):
        path = _below(root, strings[0])
        flags = arguments.rpartition('"')[2]
        kind = "elsewhere" if path is None else "append" if "O_APPEND" in flags else "open"
        assert path is None or "O_TRUNC" not in flags
        return [Event(kind, path or "", fd=result)]
    if call.partition("at")[0] in ("mkdir", "unlink", "rmdir", "rename"):
        path, other = _below(root, strings[0]), _below(root, strings[-1])
        return [] if path is None or other is None else [Event(call.partition("at")[0], path, other)]
    if call in ("write", "pwrite64"):
        data = strings[0][:result]
        if first in ("1", "2"):
            return [Event("show", fd=int(first), data=data)]
        offset = int(arguments.rpartition(", ")[2]) if call == "pwrite64" else -1
        return [Event("pwrite" if call == "pwrite64" else "write", fd=int(first), data=data, number=offset)]
    if call in ("fsync", "fdatasync", "close"):
        return [Event("close" if call == "close" else "sync", fd=int(first))]
    if call == "ftruncate":
        return [Event("truncate", fd=int(first), number=int(arguments.rpartition(", ")[2]))]
    raise AssertionError(f"the model does not know {call}({arguments})")


def _below(root: str, path: bytes) -> str | None:
    text = path.decode()
    return text.removeprefix(root).strip("/") if text == root or text.startswith(root + "/") else None


def main(file: str) -> None:
    """See the top of this file."""
    from mino import __main__ as program

    # What is loaded here need not be loaded by every child.
    from mino.journal import schema

    schema.are_valid([])
    for module in ("ask", "chat", "compact", "session", "forget", "recover"):
        importlib.import_module(f"mino.commands.{module}")
    importlib.import_module("mino.responses.post")
    for root, home, words, stdin in json.loads(Path(file).read_text()):
        with contextlib.suppress(OSError):
            os.mkdir(MARK + root)
        pid = os.fork()
        if not pid:
            status = 99
            try:
                os.environ["MINO_HOME"] = os.path.join(root, home)
                sys.argv = ["mino", *words]
                Path(root + ".input").write_text(stdin)
                os.dup2(os.open(root + ".input", os.O_RDONLY), 0)
                for fd in (1, 2):
                    os.dup2(os.open(root + ".output", os.O_WRONLY | os.O_CREAT | os.O_APPEND), fd)
                status = program.run()
            finally:
                os._exit(status)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")


if __name__ == "__main__":
    main(sys.argv[1])
