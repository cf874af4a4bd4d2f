"""What is asked of the system to change a file, in order."""

import errno
import os
import stat
from collections.abc import Callable
from typing import Any

import pytest

from mino import disk

_SYNC = disk.sync


def watch_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that are made from now on: `write`, `cut`, `rename`, `sync`, and `sync directory`."""
    seen: list[str] = []

    def note(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            seen.append(name)
            return real(*arguments)

        return call

    def sync(fd: int) -> None:
        seen.append("sync directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "sync")
        _SYNC(fd)

    monkeypatch.setattr(os, "write", note("write", os.write))
    monkeypatch.setattr(os, "ftruncate", note("cut", os.ftruncate))
    monkeypatch.setattr(os, "rename", note("rename", os.rename))
    monkeypatch.setattr(disk, "sync", sync)
    return seen


def fail_sync(fd: int) -> None:
    """A sync that fails as on a broken disk, to be put in the place of `disk.sync`."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))
