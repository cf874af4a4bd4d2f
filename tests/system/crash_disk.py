"""A model of a disk: what a process sees, and every state that POSIX allows on disk after a power cut.

Of a file, the data since its last sync may be there or not, sector by sector and in any order; a sector that is not
is zeros, or what it was before. The length may be any on the way. Of a directory, each entry may be any that it was
since the last sync. Only a sync of the file, or of the directory, settles them; neither settles the other.
"""

import itertools
import os
import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple

SECTOR = 512
TEMPORARY = ".mino-"
LOCK = "sessions.lock"

Tree = Mapping[str, bytes | None]
"""What is on a disk: the content of each file by its path, None for a directory."""


class Event(NamedTuple):
    """A system call that succeeded: its kind, its paths below the root, its descriptor, its data.

    `number` is the offset of a `pwrite`, and the size of a `truncate`.
    """

    call: str
    path: str = ""
    other: str = ""
    fd: int = -1
    data: bytes = b""
    number: int = -1


class File:
    """A file: all its contents since the last sync; the first is on disk, the last is what a process reads."""

    def __init__(self, data: bytes = b"") -> None:
        self.versions = [data]

    def change(self, data: bytes) -> None:
        self.versions.append(data)

    def sync(self) -> None:
        self.versions = self.versions[-1:]

    def contents(self) -> Iterator[bytes]:
        """Every content that a power cut can leave; of the lengths inside a sector, one near each end."""
        versions = self.versions
        if len(set(versions)) == 1:
            yield versions[-1]
            return
        shortest, longest = min(map(len, versions)), max(map(len, versions))
        places = range(0, longest, SECTOR)
        lengths = {*map(len, versions), *range(shortest - shortest % SECTOR + SECTOR, longest, SECTOR)}
        lengths |= {min(shortest + 1, longest), max(longest - 1, shortest)}
        sectors = [{version[place : place + SECTOR].ljust(SECTOR, b"\0") for version in versions} for place in places]
        seen = set()
        for length in sorted(lengths):
            count = -(-length // SECTOR)
            for chosen in itertools.product(*map(sorted, sectors[:count])):
                content = b"".join(chosen)[:length]
                if content not in seen:
                    seen.add(content)
                    yield content


class Directory:
    """A directory: for each name all that it stood for since the last sync, None for nothing."""

    def __init__(self) -> None:
        self.names: dict[str, list[Node | None]] = {}

    def get(self, name: str) -> "Node | None":
        return self.names.get(name, [None])[-1]

    def set(self, name: str, node: "Node | None") -> None:
        self.names.setdefault(name, [None]).append(node)

    def sync(self) -> None:
        self.names = {name: nodes[-1:] for name, nodes in self.names.items() if nodes[-1] is not None}


Node = File | Directory


class Disk:
    """A disk on which calls happen one after another; deepcopy is a moment of it."""

    def __init__(self, tree: Tree) -> None:
        self.root = Directory()
        for path, content in sorted(tree.items()):
            self._put(path, Directory() if content is None else File(content))
        for path in [path for path, content in tree.items() if content is None]:
            self._directory(path).sync()
        self.root.sync()
        self._open: dict[int, tuple[Node, int | None]] = {}  # with the place of the next write, None for the end

    def _find(self, path: str) -> Node | None:
        node: Node | None = self.root
        for name in filter(None, path.split("/")):
            node = node.get(name) if isinstance(node, Directory) else None
        return node

    def _directory(self, path: str) -> Directory:
        node = self._find(path)
        assert isinstance(node, Directory), path
        return node

    def _put(self, path: str, node: Node | None) -> None:
        folder, name = os.path.split(path)
        self._directory(folder).set(name, node)

    def restart(self) -> None:
        """A new process has nothing open."""
        self._open = {}

    def is_pending(self) -> bool:
        """Whether a power cut could still change what is there, the lock apart."""
        return _is_pending(self.root)

    def changes(self, event: Event) -> bool:
        """Whether `event` changed what a power cut can leave; a sync only takes possible states away."""
        return event.call in ("mkdir", "unlink", "rmdir", "rename", "open", "append", "write", "pwrite", "truncate")

    def apply(self, event: Event) -> None:
        """Let a call happen."""
        if event.call == "mkdir":
            self._put(event.path, Directory())
        elif event.call in ("unlink", "rmdir"):
            self._put(event.path, None)
        elif event.call == "rename":
            node = self._find(event.path)
            self._put(event.path, None)
            self._put(event.other, node)
        elif event.call in ("open", "append"):
            node = self._find(event.path)
            if node is None:
                node = File()
                self._put(event.path, node)
            self._open[event.fd] = node, None if event.call == "append" else 0
        elif event.call in ("elsewhere", "close"):
            self._open.pop(event.fd, None)
        elif event.call in ("sync", "write", "pwrite", "truncate") and event.fd in self._open:
            self._change(event)

    def _change(self, event: Event) -> None:
        node, place = self._open[event.fd]
        if event.call == "sync":
            node.sync()
            return
        assert isinstance(node, File)
        now = node.versions[-1]
        if event.call == "truncate":
            node.change(now[: event.number].ljust(event.number, b"\0"))
            return
        if event.call == "pwrite":
            place = event.number
        elif place is None:
            place = len(now)
        else:
            self._open[event.fd] = node, place + len(event.data)
        node.change(now[:place].ljust(place, b"\0") + event.data + now[place + len(event.data) :])

    def tree(self) -> Tree:
        """What a process sees, and what a kill leaves."""
        return _trees(self.root, "", is_now=True)[0]

    def states(self, most: int | None, chance: random.Random) -> list[Tree]:
        """What a power cut now can leave: all of it, or the least, the most, and `most` others of it."""
        states = _trees(self.root, "", is_now=False)
        if most is None or len(states) <= most + 2:
            return states
        return [states[0], self.tree(), *chance.sample(states[1:], most)]


def _is_pending(node: Node | None) -> bool:
    if isinstance(node, File):
        return len(node.versions) > 1
    if node is None:
        return False
    return any(name != LOCK and (len(nodes) > 1 or any(map(_is_pending, nodes))) for name, nodes in node.names.items())


def _trees(directory: Directory, prefix: str, *, is_now: bool) -> list[Tree]:
    """What can stand below `directory`; the first has nothing of what was not synced."""
    found: list[Tree] = [{}]
    for name, nodes in sorted(directory.names.items()):
        path = prefix + name
        options: list[Tree] = []
        for node in nodes[-1:] if is_now else dict.fromkeys(nodes):
            if node is None:
                options.append({})
            elif isinstance(node, Directory):
                options += [{path: None, **below} for below in _trees(node, path + "/", is_now=is_now)]
            elif is_now or name.startswith(TEMPORARY):
                options.append({path: node.versions[-1]})  # what is in it decides nothing
            elif name == LOCK:
                options.append({path: node.versions[0]})  # never synced: a lock that says nothing is the harder case
            else:
                options += [{path: content} for content in node.contents()]
        found = [{**tree, **option} for tree in found for option in options]
    return found
