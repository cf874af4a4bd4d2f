"""A program in a window of tmux: what a person sees there, wide characters, pagers and other shells included.

`screen.Terminal` knows what Mino itself writes, byte for byte; this is for programs that write whatever they like.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

PATIENCE = 30.0


class Window:
    """A window in which `command` runs, in the directory `place`, until the `with` block ends."""

    def __init__(
        self,
        command: Sequence[str | bytes],
        environ: Mapping[str, str],
        place: Path,
        *,
        columns: int = 100,
        rows: int = 24,
    ) -> None:
        if not shutil.which("tmux"):
            pytest.skip("tmux is not installed")
        # Not below `place`: the path of a socket is short.
        self._folder = tempfile.TemporaryDirectory()
        self._tmux = ["tmux", "-u", "-f", os.devnull, "-S", f"{self._folder.name}/tmux"]
        # The server would give its own environment to the program, and a program in it must not find that.
        words = [f"{name}={value}" for name, value in {"LC_ALL": "C.UTF-8", **environ}.items()]
        self._run("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(place), "sleep 600")
        self._run("set-option", "-g", "remain-on-exit", "on")
        self._run("set-option", "-g", "status", "off")
        start = ["env", "-i", *words, "TERM=screen-256color", *map(os.fsdecode, command)]
        self._run("respawn-pane", "-k", "-c", str(place), *start)

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words],
            env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"},
            capture_output=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def press(self, *keys: str) -> None:
        """Press these keys, by the names that tmux has for them: `Tab`, `C-c`."""
        self._run("send-keys", *keys)

    def write(self, text: str) -> None:
        """Type `text`."""
        self._run("send-keys", "-l", "--", text)

    def resize(self, columns: int, rows: int = 24) -> None:
        """Make the window narrower or wider."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def text(self) -> str:
        """What stands in the window, without blanks at the ends of lines and of the whole, and what tmux says."""
        lines = [line.rstrip() for line in self._run("capture-pane", "-p").split("\n")]
        return "\n".join(line for line in lines if not line.startswith("Pane is dead (")).rstrip("\n")

    @property
    def history(self) -> str:
        """As `text`, with what was scrolled out, wrapped lines joined, and colours as escape sequences."""
        return self._run("capture-pane", "-p", "-J", "-e", "-S", "-")

    @property
    def status(self) -> int | None:
        """The exit status of the program; None while it runs."""
        dead, status, signum = (
            self._run("display-message", "-p", "#{pane_dead},#{pane_dead_status},#{pane_dead_signal}")
            .strip()
            .split(",")
        )
        return (int(status) if status else -int(signum or 0)) if dead == "1" else None

    def wait_for(self, wanted: str | Callable[[str], bool]) -> str:
        """Wait until the window ends in `wanted`, or until `wanted` holds for it; what it then shows."""
        holds = wanted if callable(wanted) else lambda text: text.endswith(wanted.rstrip())
        deadline = time.monotonic() + PATIENCE
        while not holds(text := self.text):
            assert time.monotonic() < deadline, f"waited too long, and the window is:\n{text}"
            time.sleep(0.05)
        return text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False, timeout=30)
        self._folder.cleanup()
