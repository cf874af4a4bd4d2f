"""What one process does to one file, by strace: opens, reads, writes and syncs. Linux only."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CALLS = "open,openat,read,pread64,readv,write,pwrite64,writev,fsync,fdatasync,ftruncate,mmap"
_OPENED = re.compile(r"(?:open|openat)\(.* = \d+<(?P<path>[^>]*)>$")
_DONE = re.compile(r"(?P<name>\w+)\((?:[^<(]*, )?\d+<(?P<path>[^>]*)>.*\) += (?P<result>-?\d+|\?)")
_BEGUN = re.compile(r"(?P<pid>\d+) +(?P<call>.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"(?P<pid>\d+) +<\.\.\. \w+ resumed>(?P<rest>.*)$")


@dataclass(frozen=True, slots=True)
class Call:
    """One system call on the file: its name, and what it returned (bytes, for reads and writes)."""

    name: str
    result: int


def is_possible() -> bool:
    """Whether strace is here, and may trace."""
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-qq", "true"], check=False, capture_output=True).returncode == 0


def trace(argv: Sequence[str], environ: Mapping[str, str], file: Path) -> list[Call]:
    """The calls that a run of `argv`, its threads and children included, makes on `file`, in order.

    Raises CalledProcessError if it does not end with 0.
    """
    with tempfile.NamedTemporaryFile("r") as log:
        words = ["strace", "-f", "-y", "-qq", "-s", "0", "-e", f"trace={_CALLS}", "-o", log.name, *argv]
        subprocess.run(words, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return read_calls(log.read().splitlines(), str(file))


def read_calls(lines: Sequence[str], path: str) -> list[Call]:
    """The calls on the file at `path` in the lines of a log of `strace -f -y`."""
    path = "".join(chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:o}" for byte in path.encode())  # as strace writes it
    calls = []
    unfinished: dict[str, str] = {}
    for line in lines:
        if begun := _BEGUN.match(line):
            unfinished[begun["pid"]] = begun["call"]
            continue
        resumed = _RESUMED.match(line)
        call = unfinished.pop(resumed["pid"], "") + resumed["rest"] if resumed else line.partition(" ")[2].strip()
        if opened := _OPENED.match(call):
            if opened["path"] == path:
                calls.append(Call("open", 0))
        elif (done := _DONE.match(call)) and done["path"] == path:
            calls.append(Call(done["name"], int(done["result"]) if done["result"] != "?" else -1))
    return calls
