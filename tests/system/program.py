"""`mino` as a real process, with a home and an environment of its own, and what it left on disk.

ended = mino.run("ask", "What is the capital of France?", server=server)
assert ended.status == 0 and ended.out == "Paris\n"
assert mino.types() == ["user_message", "assistant_message", "turn_end"]
"""

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from mino.journal.findings import Report
from mino.journal.loader import Loading
from mino.journal.order import Turn
from tests import homes
from tests.server import ScriptedServer

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "data" / "cases"
SESSION_ID = "0193a0b1c2d37000800000000000000a"
# What a test promises of the unnamed conversation and of a named one, which MINO_SESSION chooses.
BOTH = pytest.mark.parametrize("mino", [None, "计划 🌱"], ids=["unnamed", "named"], indirect=True)
PATIENCE = 120.0  # seconds that a process may take; far more than any needs, so that only a hang is cut short

Word = str | bytes
Stream = int | IO[bytes] | None


@dataclass(frozen=True)
class Ended:
    """How a process ended: `status` is its exit status, or the negative number of the signal that killed it."""

    status: int
    raw_out: bytes
    raw_err: bytes

    @property
    def out(self) -> str:
        """What stands on stdout; all of it is UTF-8, always."""
        return self.raw_out.decode()

    @property
    def err(self) -> str:
        """What stands on stderr."""
        return self.raw_err.decode()

    @property
    def json(self) -> Any:
        """stdout as the one line of JSON that it is."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@dataclass
class Program:
    """`mino` with the home `home`; `environ` is the whole environment of every process, to be changed at will."""

    home: Path
    environ: dict[str, str] = field(default_factory=dict)
    name: str | None = None  # of the conversation that `environ` chooses, and whose files these are

    def command(self, *arguments: Word) -> list[Word]:
        """The words that start `mino` with these arguments, for a shell script or another program to run."""
        return [sys.executable, "-m", "mino", *arguments]

    def start(
        self,
        *arguments: Word,
        server: ScriptedServer | None = None,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[Word] = (),
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = subprocess.PIPE,
        stderr: Stream = subprocess.PIPE,
    ) -> "subprocess.Popen[bytes]":
        """Start `mino`; `env` is added to the environment, `prefix` is a command that runs it (strace, a limit)."""
        environ = self.environ | dict(env or {})
        if server:
            environ["OPENAI_BASE_URL"] = server.url
        return subprocess.Popen(
            [*prefix, *self.command(*arguments)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environ,
            cwd=self.home.parent,
        )

    def run(
        self,
        *arguments: Word,
        server: ScriptedServer | None = None,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[Word] = (),
        stdin: bytes | Stream = subprocess.DEVNULL,
        stdout: Stream = subprocess.PIPE,
    ) -> Ended:
        """Run `mino` to its end, with the bytes `stdin` as its input."""
        given, source = (stdin, subprocess.PIPE) if isinstance(stdin, bytes) else (None, stdin)
        process = self.start(*arguments, server=server, env=env, prefix=prefix, stdin=source, stdout=stdout)
        return finish(process, given)

    def run_in_shell(self, script: str, *arguments: Word) -> Ended:
        """Run `script` by `sh`; `"$@"` in it is `mino` with these arguments."""
        return self.run(*arguments, prefix=["sh", "-c", script, "sh"])

    # What is on disk

    @property
    def session(self) -> Path:
        """The one session file."""
        [path] = [path for path in self.files() if "-recovery-" not in path.name]
        return path

    @property
    def copies(self) -> list[Path]:
        """The recovery copies."""
        return [path for path in self.files() if "-recovery-" in path.name]

    def files(self) -> list[Path]:
        """All that lies in its folder but the lock."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path for path in found if path.suffix != ".lock")

    @property
    def folder(self) -> Path:
        """Where the session file is."""
        return self.home / ("saved" if self.name else "sessions")

    @property
    def lock(self) -> Path:
        """The lock of the conversation."""
        return self.folder / f"{self.name}.lock" if self.name else self.home / "sessions.lock"

    def write_session(self, data: bytes) -> Path:
        """Make `data` the session file."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.home.chmod(0o700)
        path = self.folder / f"{self.name or SESSION_ID}.jsonl"
        path.touch(mode=0o600)
        path.write_bytes(data)
        return path

    def records(self) -> list[Any]:
        """The records of the session file, parsed; an unfinished last line is an error of the test."""
        data = self.session.read_bytes()
        assert not data or data.endswith(b"\n")
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def types(self) -> list[str]:
        """The records' types, of a `turn_end` its status: `["user_message", "cancelled"]`."""
        return [record.get("status", record["type"]) for record in self.records()]

    def load(self) -> tuple[list[Turn], Report]:
        """The turns of the session file and all that is to say about it, by the program's own loader."""
        return load(self.session.read_bytes())


def load(data: bytes) -> tuple[list[Turn], Report]:
    """The turns in `data`, and the report with all findings."""
    loading = Loading([data], all_findings=True)
    return list(loading), loading.report


def finish(process: "subprocess.Popen[bytes]", stdin: bytes | None = None, patience: float = PATIENCE) -> Ended:
    """Wait for the end of `process`, killing it if that takes too long; checks that stderr obeys the house style."""
    try:
        out, err = process.communicate(stdin, patience)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    ended = Ended(process.returncode, out or b"", err or b"")
    check_messages(ended.err)
    return ended


def check_messages(err: str) -> None:
    """Every line on stderr begins with `mino: ` or `hint: `, and none ends in a full stop (spec section 11)."""
    for line in err.splitlines():
        assert line.startswith(("mino: ", "hint: ")), err
        assert not line.endswith("."), err


def limited(size: int) -> list[Word]:
    """A prefix under which no file can grow beyond `size` bytes, as if the disk were full there (RLIMIT_FSIZE)."""
    # Python does not notice that it wrote half a .pyc, and would die of it ever after.
    code = f"""if True:
        import os, resource, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
        os.execve(sys.argv[1], sys.argv[1:], os.environ | {{"PYTHONDONTWRITEBYTECODE": "1"}})"""
    return [sys.executable, "-ISc", code]


def read_until(stream: IO[bytes] | None, wanted: bytes) -> bytes:
    """Read from the pipe `stream` until what was read holds `wanted`; all that was read."""
    assert stream
    data = b""
    while wanted not in data:
        piece = os.read(stream.fileno(), 65536)
        assert piece, f"the pipe ended after {data!r}"
        data += piece
    return data


def unread(pipe: int) -> int:
    """How many bytes of a pipe its reader has not taken yet; none are left once it waits for more."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])


def sent_texts(body: Any) -> list[str]:
    """The texts in the `input` of a request body, the new question last."""
    return [item["content"][0]["text"] for item in body["input"]]


def two_turns() -> bytes:
    """A journal: one, A1, two (with a failed turn before it), A2."""
    failed = homes.ended(4, "0193a0b1c2d370008000000000000002", "never answered", "failed")
    return homes.numbered(homes.completed(("one", "A1")), failed, homes.completed(("two", "A2")))
