"""Fixtures of the system tests: the program with an empty home, and a server that always answers."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import ScriptedServer, completed
from tests.system.program import ROOT, Program

# A suite that was started by `nohup` or in the background ignores signals, and every program it starts would inherit
# that. A handler that does nothing is not inherited, and the suite itself still ignores them.
for _signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, lambda _signum, _frame: None)


@pytest.fixture
def mino(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """The program, with nothing in its home and nothing in its environment but where things are (and see `BOTH`)."""
    name: str | None = getattr(request, "param", None)
    environ = {
        "HOME": str(tmp_path),
        "MINO_HOME": str(tmp_path / "mino home"),
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(ROOT),
    }
    return Program(tmp_path / "mino home", environ | ({"MINO_SESSION": name} if name else {}), name)


@pytest.fixture
def server(mino: Program) -> Iterator[ScriptedServer]:
    """A server that answers every question with `巴黎 🗼`; `mino` asks it."""
    with ScriptedServer(always=completed("巴黎 🗼")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        yield server
