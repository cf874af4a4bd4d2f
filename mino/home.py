"""The paths under the home, and their modes (mino(1), FILES)."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from mino import disk
from mino.errors import CannotCreate, MinoError, Misconfigured, UsageMistake
from mino.text import shell_word


class Home(NamedTuple):
    """The directory of all of a user's Mino; `is_default` if it is `~/.mino`, whose mode Mino may narrow."""

    path: str
    is_default: bool

    @property
    def sessions(self) -> str:
        return os.path.join(self.path, "sessions")

    @property
    def saved(self) -> str:
        return os.path.join(self.path, "saved")

    @property
    def lock(self) -> str:
        return os.path.join(self.path, "sessions.lock")

    @property
    def soul(self) -> str:
        return os.path.join(self.path, "SOUL.md")

    @property
    def config(self) -> str:
        return os.path.join(self.path, "config.toml")

    @property
    def current(self) -> str:
        return os.path.join(self.path, "current")


def find_home(option: str | None, environ: Mapping[str, str]) -> Home:
    """The home by `--home`, else MINO_HOME, else `~/.mino`; it need not exist.

    Raises Misconfigured if there is none, CannotCreate if there can be none, UsageMistake.
    """
    if option == "":  # `--home "$UNSET"` must not write into another home than the one that was meant
        raise UsageMistake("bad value '' for --home: expected a directory")
    named = option or environ.get("MINO_HOME") or "~/.mino"
    default = os.path.expanduser("~/.mino")
    if named.startswith("~") and (default.startswith("~") or environ.get("HOME") == ""):
        raise Misconfigured("the home directory is unknown", "export MINO_HOME=DIR")
    path = os.path.abspath(os.path.expanduser(named))  # no shell has expanded `--home=~/x`, nor a variable of systemd's
    _check_place(path)
    return Home(path, path == os.path.abspath(default))


def _check_place(path: str) -> None:
    """Raise CannotCreate where `path`, or what it lies under, is there and is no directory."""
    place = path
    while not os.path.lexists(place):  # not `exists`: a link to a disk that is not mounted is in the way too
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise CannotCreate(f"cannot use the home '{path}': '{place}' is not a directory", f"ls -ld {shell_word(place)}")


def find_usable_home(option: str | None, environ: Mapping[str, str]) -> Home | None:
    """The home for a question without history, which only takes settings from it; None if it cannot be read."""
    try:
        home = find_home(option, environ)
    except (CannotCreate, Misconfigured):
        return None
    return home if os.access(home.path, os.R_OK | os.X_OK) else None


def make_home(home: Home) -> list[str]:
    """Make the home directory if it is missing; returns sentences on what was narrowed or should be.

    A directory other than `~/.mino` that existed before is the user's, and is not narrowed. Raises CannotCreate.
    """
    made = disk.make_directory(home.path)
    ignore = os.path.join(home.path, ".gitignore")
    # A home inside a project must not be committed with it. An empty one is as new: its maker was killed here.
    if made or disk.is_empty(home.path):
        with suppress(CannotCreate):  # another process does the same, or the lock will say what is wrong
            disk.create(ignore, [b"*\n"])
    elif not any(map(os.path.isdir, (home.sessions, home.saved))):
        with suppress(MinoError):  # its maker was killed here, or it is a user's own
            disk.sync_file(ignore)
        disk.sync_entry(home.path)  # whoever made it may have been killed before a lock could say so
    mode = before = stat.S_IMODE(os.stat(home.path).st_mode)
    if mode & 0o077 and home.is_default:
        mode = disk.set_mode(home.path, 0o700)
    if mode & 0o077:
        return [f"the home '{home.path}' has mode {mode:04o}: others can reach it"]
    return [] if mode == before else [_narrowed(home.path, before, mode)]


def wide(home: Home) -> Iterator[tuple[str, int, int]]:
    """Each path in the home that others can access, with its mode and the mode that it should have."""
    yield from wide_places(home)
    for directory in (home.sessions, home.saved):
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                yield from wide_file(entry.path)


def wide_places(home: Home) -> Iterator[tuple[str, int, int]]:
    """As `wide`, without the files in the folders, because there can be thousands."""
    for path, wanted in ((home.sessions, 0o700), (home.saved, 0o700), (home.lock, 0o600), (home.current, 0o600)):
        yield from _wide(path, wanted)


def wide_file(path: str) -> Iterator[tuple[str, int, int]]:
    """As `wide`, for the one file at `path` in a folder of Mino's; nothing if it is not one of Mino's."""
    with suppress(OSError):
        if path.endswith((".jsonl", ".lock")) and stat.S_ISREG(os.stat(path, follow_symlinks=False).st_mode):
            yield from _wide(path, 0o600)


def _wide(path: str, wanted: int) -> Iterator[tuple[str, int, int]]:
    with suppress(OSError):
        mode = stat.S_IMODE(os.stat(path, follow_symlinks=wanted == 0o700).st_mode)
        if mode & 0o077:
            yield path, mode, wanted


def narrow(home: Home) -> list[str]:
    """Narrow the modes that `wide` gives; returns a sentence for each.

    What stays as it is has one sentence in all: a file of another owner, or every file if there are no modes.
    """
    told, left = [], []
    for path, mode, wanted in wide(home):
        after = mode
        with suppress(OSError, MinoError):
            if wanted == 0o700:
                after = disk.set_mode(path, wanted)
            else:
                with disk.opened(path) as fd:
                    after = disk.set_mode(fd, wanted)
        if after & 0o077:
            left.append(f"'{path}' has mode {after:04o}, which cannot be narrowed to {wanted:04o}")
        else:
            told.append(_narrowed(path, mode, after))
    if left:
        more = len(left) - 1
        told.append(left[0] + (f"; the same is true of {more} more" if more else ""))
    return told


def _narrowed(path: str, mode: int, wanted: int) -> str:
    return f"narrowed '{path}' from mode {mode:04o} to {wanted:04o}"
