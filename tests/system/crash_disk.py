"""A model of a disk: what a process sees, and every state that POSIX allows on disk after a power cut.

Of a file, the data since its last sync may be there or not, sector by sector and in any order; a sector that is not
is zeros, or what it was before. The length may be any on the way. Of a directory, each entry may be any that it was
since the last sync. Only a sync of the file, or of the directory, settles them; neither settles the other.
"""

import itertools
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

SECTOR = 512
TEMPORARY = ".mino-"
LOCK = ".lock"

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
        lengths, sectors = self._parts()
        seen = set()
        for length in sorted(lengths):
            for chosen in itertools.product(*sectors[: -(-length // SECTOR)]):
                content = b"".join(chosen)[:length]
                if content not in seen:
                    seen.add(content)
                    yield content

    def content(self, chance: random.Random) -> bytes:
        """One of `contents`."""
        lengths, sectors = self._parts()
        return b"".join(map(chance.choice, sectors))[: chance.choice(sorted(lengths))]

    def _parts(self) -> tuple[set[int], list[list[bytes]]]:
        """The lengths that it can have, and for each sector what can be in it."""
        versions = self.versions
        shortest, longest = min(map(len, versions)), max(map(len, versions))
        lengths = set(map(len, versions))
        if shortest < longest:
            lengths |= {*range(shortest - shortest % SECTOR + SECTOR, longest, SECTOR), shortest + 1, longest - 1}
        places = range(0, longest, SECTOR)
        return lengths, [sorted({each[at : at + SECTOR].ljust(SECTOR, b"\0") for each in versions}) for at in places]


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

    def unsettled(self) -> list[str]:
        """The paths at which a power cut could still change what is there, the locks apart."""
        return sorted(_unsettled(self.root, ""))

    def history(self) -> object:
        """What there was at each path since the last sync: two moments with the same leave the same."""
        return _history(self.root)

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
        return next(_trees(self.root, "", lambda nodes: nodes[-1:], lambda _, file: file.versions[-1:]))

    def states(self) -> Iterator[Tree]:
        """Everything that a power cut now can leave."""
        return _trees(self.root, "", lambda nodes: list(dict.fromkeys(nodes)), _contents)

    def sample(self, most: int, chance: random.Random) -> Iterator[Tree]:
        """The least that a power cut now can leave, the most, and up to `most` other states."""
        yield next(_trees(self.root, "", lambda nodes: nodes[:1], lambda _, file: file.versions[:1]))
        yield self.tree()
        for _ in range(most):
            yield next(
                _trees(
                    self.root,
                    "",
                    lambda nodes: [chance.choice(nodes)],
                    lambda name, file: _fixed(name, file) or [file.content(chance)],
                )
            )


def _contents(name: str, file: File) -> Iterable[bytes]:
    return _fixed(name, file) or file.contents()


def _fixed(name: str, file: File) -> list[bytes]:
    """The one content that is looked at of a file whose content decides nothing."""
    if name.endswith(LOCK):
        return file.versions[:1]  # never synced: a lock that says nothing is the harder case
    return file.versions[-1:] if name.startswith(TEMPORARY) else []


def _unsettled(directory: Directory, prefix: str) -> Iterator[str]:
    for name, nodes in directory.names.items():
        if name.endswith(LOCK):
            continue
        if len(set(nodes)) > 1 or (isinstance(nodes[-1], File) and len(set(nodes[-1].versions)) > 1):
            yield prefix + name
        if isinstance(nodes[-1], Directory):
            yield from _unsettled(nodes[-1], f"{prefix}{name}/")


def _history(node: Node | None) -> object:
    if isinstance(node, Directory):
        return {name: [_history(each) for each in nodes] for name, nodes in node.names.items()}
    return node and node.versions


def _trees(
    directory: Directory,
    prefix: str,
    nodes_of: Callable[[list[Node | None]], list[Node | None]],
    contents_of: Callable[[str, File], Iterable[bytes]],
) -> Iterator[Tree]:
    """What can stand below `directory`, if of all that a name stood for it can be `nodes_of`, and so on."""

    def options(path: str, name: str, nodes: list[Node | None]) -> Iterator[Tree]:
        for node in nodes_of(nodes):
            if node is None:
                yield {}
            elif isinstance(node, Directory):
                yield from ({path: None, **below} for below in _trees(node, path + "/", nodes_of, contents_of))
            else:
                yield from ({path: content} for content in contents_of(name, node))

    def trees(names: list[tuple[str, list[Node | None]]]) -> Iterator[Tree]:
        if not names:
            yield {}
            return
        (name, nodes), *rest = names
        for option in options(prefix + name, name, nodes):
            for tree in trees(rest):
                yield {**option, **tree}

    return trees(sorted(directory.names.items()))
