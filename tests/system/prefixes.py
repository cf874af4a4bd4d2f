"""Commands that run `mino` where something fails: as a user without privileges, on a small disk, under strace."""

import os
import shutil
import subprocess
from functools import cache

import pytest

from tests.homes import obeys_modes
from tests.system.program import Word


def ordinary() -> list[Word]:
    """A prefix under which modes hold for root too: it takes away every capability."""
    if obeys_modes():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root, and no setpriv (util-linux) to become less than that")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def mounted(script: str, *arguments: Word) -> list[Word]:
    """A prefix that runs the shell `script` in a mount namespace of its own; its words are `arguments`, then `mino`."""
    if not _can_mount():
        pytest.skip("no right to mount in a namespace")
    return ["unshare", "-m", "sh", "-c", script, "sh", *arguments]


@cache
def _can_mount() -> bool:
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(shutil.which("unshare")) and not subprocess.run(command, capture_output=True, check=False).returncode


def traced(*options: str) -> list[Word]:
    """A prefix that runs under strace, threads included."""
    if not _can_trace():
        pytest.skip("no strace, or no right to trace")
    return ["strace", "-f", "--seccomp-bpf", *options]


@cache
def _can_trace() -> bool:
    command = ["strace", "-f", "--seccomp-bpf", "-o", os.devnull, "true"]
    return bool(shutil.which("strace")) and not subprocess.run(command, capture_output=True, check=False).returncode
