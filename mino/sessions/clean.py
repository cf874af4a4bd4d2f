"""Removing what Mino kept by itself: automatic copies and recovery copies (mino-session(1), `clean`)."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from mino.errors import SessionInUse
from mino.home import Home
from mino.journal.recovery import COPY_NAME
from mino.sessions import saved
from mino.sessions.conversation import lock
from mino.sessions.place import Place, current_name, is_name, place_of
from mino.text import Tell, now, say_nothing


class Removed(NamedTuple):
    """A file that was removed, or would be, and its size in bytes."""

    path: str
    bytes: int


def clean(home: Home, seconds: float, tell: Tell, *, dry_run: bool) -> list[Removed]:
    """Remove the copies that are older than `seconds`, or with `dry_run` only find them.

    What a person named stays, and so does the current conversation. One that is in use is passed over, and reported.
    Raises StorageFailed, and as `lock`; then what was removed before is gone.
    """
    before = now() - seconds
    found = _find(home, before, tell)
    if dry_run:
        return [each for removals in found.values() for each in removals]
    done = []
    for place, removals in found.items():
        try:
            with lock(place, 0, tell):
                current = current_name(home, say_nothing)
                for each in removals:
                    # It may have been recovered, asked or opened before the lock was held.
                    if _old_size(each.path, before) is not None and not _is_current(place, current, each.path):
                        saved.remove(each.path)
                        done.append(each)
                if place.name is not None and not place.find():
                    saved.remove(place.lock)
        except SessionInUse as busy:
            if removals:
                tell(f"{busy.message}; its copies stay")
    return done


def _find(home: Home, before: float, tell: Tell) -> dict[Place, list[Removed]]:
    found: dict[Place, list[Removed]] = {}
    current = current_name(home, tell)
    for path in _copies(home):
        place, size = place_of(home, path), _old_size(path, before)
        if place and size is not None and not _is_current(place, current, path):
            found.setdefault(place, []).append(Removed(path, size))
    for file in _files(home.saved):
        place = Place(home, file.removesuffix(".lock"))
        if place.name != file and is_name(place.owner) and not place.find():
            found.setdefault(place, [])  # whoever deleted or made it was killed, and may have left more
    return found


def _is_current(place: Place, current: str | None, path: str) -> bool:
    """Whether `path` is the current conversation itself: a recovery copy of it is no conversation."""
    return place.name == current and place.is_at(path)


def _copies(home: Home) -> Iterator[str]:
    for directory in (home.saved, home.sessions):
        for file in _files(directory):
            stem = file.removesuffix(saved.SUFFIX)
            if COPY_NAME.fullmatch(stem) or (directory == home.saved and saved.is_automatic(stem)):
                yield os.path.join(directory, file)


def _files(directory: str) -> list[str]:
    with suppress(OSError):
        return sorted(os.listdir(directory))
    return []


def _old_size(path: str, before: float) -> int | None:
    """The size in bytes of a file that was written before then; None for a newer one, a link or anything else."""
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return facts.st_size if stat.S_ISREG(facts.st_mode) and saved.file_time(facts) < before else None
