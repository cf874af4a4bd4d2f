"""What every row works with: the installed Mino, the server, and homes with a history of any length."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.environments import CHECKOUT
from bench.histories import write_session
from bench.measure import Command
from bench.server import Server

SESSION = "01992c0e2f007abc8def0123456789ab.jsonl"
QUESTION = "And what is the capital of Spain?"

# What the commands that check a record cannot do without, and what `ask` cannot.
IMPORT_CLICK = "import click"
IMPORT_RECORDS = "import click, orjson, jsonschema_rs"


@dataclass(frozen=True)
class Workbench:
    """`programs` is the `bin` directory of Mino's environment; `files` is a folder that is emptied at the end."""

    programs: Path
    server: Server
    files: Path
    rounds: int
    quick: bool

    def python(self, name: str, *words: str, prepare: Callable[[], None] | None = None) -> Command:
        """A run of the interpreter that Mino runs with, in its environment."""
        return Command(name, [str(self.programs / "python"), *words], {"HOME": str(self.files)}, prepare)

    def floor(self, script: str, *words: str, prepare: Callable[[], None] | None = None) -> Command:
        """A run of one of the programs in `bench/floors`."""
        return self.python("floor", str(CHECKOUT / f"bench/floors/{script}.py"), *words, prepare=prepare)

    def mino(self, home: Path, *words: str, prepare: Callable[[], None] | None = None) -> Command:
        """A run of the installed `mino` that asks the benchmark's server."""
        environ = {"HOME": str(self.files), "MINO_HOME": str(home), "OPENAI_BASE_URL": self.server.url}
        return Command("mino", [str(self.programs / "mino"), *words], environ, prepare)

    def home(self, count: int) -> Path:
        """A home whose session has `count` turns, and nothing that a first start would still have to make."""
        home = self.files / f"home-{count}"
        if not home.exists():
            (home / "sessions").mkdir(mode=0o700, parents=True)
            home.chmod(0o700)
            session = home / "sessions" / SESSION
            session.touch(0o600)
            write_session(session, count)
            settle(session)
        return home

    def ask(self, count: int) -> Command:
        """`mino ask` after `count` turns; each time it is prepared, exactly these are there."""
        home = self.home(count)
        session = home / "sessions" / SESSION
        size = session.stat().st_size
        return self.mino(home, "ask", QUESTION, prepare=lambda: os.truncate(session, size))

    def clear(self) -> None:
        """Remove all files made so far."""
        shutil.rmtree(self.files, ignore_errors=True)
        self.files.mkdir(parents=True)


def settle(path: Path) -> None:
    """Let the disk be done with a new file, so that no measured sync pays for it."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
