"""Which conversation a command means, and where it lies: its file and its lock (mino-session(1))."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from mino import disk
from mino.errors import InvalidData, MinoError, NotFound, StorageFailed
from mino.home import Home
from mino.journal.recovery import COPY_NAME
from mino.sessions import saved
from mino.text import Tell, shell_word

SESSION_NAME = re.compile(r"[0-9a-f]{32}\.jsonl")
_OLD = 60.0  # seconds; a temporary file of `current` that is older was left by a process that was killed


class Place(NamedTuple):
    """A conversation of `home`: the one called `name`, or the unnamed one (None). It need not be there."""

    home: Home
    name: str | None

    def __str__(self) -> str:
        return "the session" if self.name is None else f"the conversation '{self.name}'"

    @property
    def folder(self) -> str:
        return self.home.sessions if self.name is None else self.home.saved

    @property
    def lock(self) -> str:
        return self.home.lock if self.name is None else os.path.join(self.home.saved, f"{self.name}.lock")

    @property
    def owner(self) -> str:
        """How the temporary files end that are written under this lock (see `disk.replace`)."""
        return self.name or ""

    def find(self) -> str | None:
        """The path of the session file, or None if there is none.

        Raises InvalidData if there is more than one: a program must not guess which of them to continue.
        """
        if self.name is not None:
            path = saved.path_of(self.home.saved, self.name)
            return path if os.path.lexists(path) else None
        names = self.session_names()
        if len(names) > 1:
            raise InvalidData(
                f"there is more than one conversation in '{self.folder}': {', '.join(names)}",
                _move_oldest(self.home, names),
            )
        return os.path.join(self.folder, names[0]) if names else None

    def is_at(self, path: str) -> bool:
        """Whether `path`, which `place_of` gave this place, is the session file itself, and not a copy of it."""
        name = os.path.basename(path)
        return bool(SESSION_NAME.fullmatch(name)) if self.name is None else name == self.name + saved.SUFFIX

    def settle(self) -> None:
        """Sync what a killed writer may have left unsynced: the session file, and the entries of the home's folders.

        Raises StorageFailed, and as `disk.opened` does.
        """
        names = self.session_names() if self.name is None else [self.name + saved.SUFFIX]
        for path in (os.path.join(self.folder, name) for name in names):
            if os.path.lexists(path):
                disk.sync_file(path)
        disk.sync_entry(self.home.path)
        for directory in (self.home.path, self.home.sessions, self.home.saved):
            if os.path.isdir(directory):
                disk.sync_directory(directory)

    def remove_temporaries(self) -> None:
        """Remove the half-made files of a killed writer of this conversation, under its lock.

        The removal is synced: a turn that is forgotten next must not come back in one of them. Raises StorageFailed.
        """
        for directory in (self.home.sessions, self.home.saved):
            removed = False
            for entry in _entries(directory):
                found = disk.TEMPORARY.fullmatch(entry.name)
                if found and found[1] == self.owner:
                    with suppress(OSError):
                        os.unlink(entry.path)
                        removed = True
            if removed:
                disk.sync_directory(directory)

    def session_names(self) -> list[str]:
        """The names of the files in `sessions/` that are session files; there should be one at most."""
        try:
            return sorted(filter(SESSION_NAME.fullmatch, os.listdir(self.folder)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise disk.open_failure(self.folder, error) from None


def _entries(directory: str) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(directory) as entries:
        yield from entries


def _move_oldest(home: Home, names: Sequence[str]) -> str:
    """The command that gives a name to the conversation that was not written to for the longest time."""

    def written(name: str) -> float:
        try:
            return os.stat(os.path.join(home.sessions, name), follow_symlinks=False).st_mtime
        except OSError:
            return 0.0

    oldest = min(names, key=written)
    source, target = os.path.join(home.sessions, oldest), os.path.join(home.saved, oldest)
    return f"mkdir -p -m 700 {shell_word(home.saved)} && mv -n {shell_word(source)} {shell_word(target)}"


def choose(home: Home, session: str | None, tell: Tell) -> Place:
    """The conversation called `session`, or without one the current one.

    Raises UsageMistake for what cannot be a name, and NotFound if the current one is not there: nothing starts empty
    unless a person asks for it.
    """
    if session is not None:
        saved.path_of(home.saved, session)
        return Place(home, session)
    place = Place(home, current_name(home, tell))
    if place.name is not None and not place.find():
        raise NotFound(
            f"the current conversation '{place.name}' is not there",
            f"mino session open {shell_word(place.name)} starts it anew; mino session open returns to the unnamed one",
        )
    return place


def find(home: Home, session: str | None, tell: Tell) -> tuple[Place, str | None]:
    """As `choose`, for a reader, with the path of the file; None if there is no unnamed conversation yet.

    Raises NotFound if there is no conversation called `session`.
    """
    place = choose(home, session, tell)
    path = place.find()
    if path is None and place.name is not None:
        raise missing(place.name)
    return place, path


def missing(name: str) -> NotFound:
    """The failure for a name that no conversation has."""
    return NotFound(f"there is no conversation '{name}'", "mino session list")


def current_name(home: Home, tell: Tell) -> str | None:
    """The name of the current conversation; None: the unnamed one. Raises as `disk.opened`, but not NotFound."""
    try:
        with disk.opened(home.current) as fd:
            name = next(disk.chunks(fd, home.current), b"").decode().removesuffix("\n")
    except NotFound:
        return None
    except UnicodeDecodeError:
        name = ""
    except MinoError as failure:
        raise type(failure)(failure.message, "mino session open") from None
    if saved.name_flaw(name):
        tell(f"'{home.current}' holds no name of a conversation, so that the unnamed one is current")
        return None
    return name


def is_current(home: Home, name: str, tell: Tell) -> bool:
    """Whether the conversation called `name` is the current one, by whatever spelling the file system takes for it."""
    current = current_name(home, tell)
    if current is None:
        return False
    return disk.is_same(*(saved.path_of(home.saved, each) for each in (current, name)))


def set_current(home: Home, name: str | None) -> None:
    """Make the conversation `name` (None: the unnamed one) the current one. Raises CannotCreate, StorageFailed."""
    for entry in _entries(home.path):
        if disk.TEMPORARY.fullmatch(entry.name):
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < time.time() - _OLD:
                    os.unlink(entry.path)
    if name is not None:
        disk.replace(home.current, [name.encode() + b"\n"])
        return
    try:
        os.unlink(home.current)
    except FileNotFoundError:
        pass  # whoever removed it may have been killed before the sync
    except OSError as error:
        raise StorageFailed(
            f"cannot remove '{home.current}': {error.strerror}", f"ls -l {shell_word(home.current)}"
        ) from None
    if os.path.isdir(home.path):
        disk.sync_directory(home.path)


def place_of(home: Home, path: str) -> Place | None:
    """The conversation whose lock guards the file at `path`, a session file or a recovery copy; None if there is none.

    It is one of `home`, or of another home, which is known by a lock.
    """
    folder, file = os.path.split(os.path.abspath(path))
    if not file.endswith(saved.SUFFIX):
        return None
    stem = file.removesuffix(saved.SUFFIX)
    copy = COPY_NAME.fullmatch(stem)
    name = copy[1] if copy else stem
    for own, is_named in ((home.sessions, False), (home.saved, True)):
        if disk.is_same(folder, own):
            return Place(home, name if is_named else None) if not is_named or is_name(name) else None
    other = Home(os.path.dirname(folder), is_default=False)
    if os.path.basename(folder) == "sessions" and os.path.lexists(other.lock):
        return Place(other, None)
    if os.path.basename(folder) == "saved" and is_name(name):
        place = Place(other, name)
        return place if os.path.lexists(other.lock) or os.path.lexists(place.lock) else None
    return None


def is_name(name: str) -> bool:
    """Whether a conversation can be called `name`."""
    return saved.name_flaw(name) is None
