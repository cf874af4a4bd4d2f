"""Gives Mino every disk that a power cut can leave, at each system call of each command that writes.

    python -m tests.system.crash_states --all          every state: some minutes
    python -m tests.system.crash_states                a sample, the same each time

A command runs under strace in one of the homes below; each moment of it is a disk of `crash_disk`. Where it exits with
0, shows the next prompt or connects to the server, a power cut can change nothing. At every other moment Mino is given
what can be left, and must find each turn that was there before, no half one, and nothing invalid. Then the same for
the next command, if this one was killed at any moment: what was not synced then is still not synced.
"""

import argparse
import copy
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.homes import completed, numbered
from tests.replies import completed as reply
from tests.server import ScriptedServer
from tests.system.crash_check import COPY, Facts, all_turns, build, find_flaws, turns_in
from tests.system.crash_disk import LOCK, Disk, Event, Tree
from tests.system.crash_trace import Job, Run, trace

ID = "0193a0b1c2d37000800000000000000a"
ANSWER = "巴黎 🗼 " * 35  # its records take more than three sectors
EARLIER = completed(("earlier question", "earlier answer"))
LIVE = completed(("live question", "live answer"), ("现场的问题", "现场的回答 🙂" * 30))
OTHER = completed(("other question", "other answer"))
SECRET = completed(("forget 忘记我", "forgotten 回答"))
WITH_SECRET = numbered(EARLIER, SECRET, OTHER)
TEXTS = '[{"role":"user","content":"imported question"},{"role":"assistant","content":"imported answer"}]'


def home(session: bytes, current: str = "", copies: Sequence[bytes] = (), **saved: bytes) -> Tree:
    """A disk with a home that has this session, these recovery copies of it and these saved sessions."""
    tree: dict[str, bytes | None] = {"home": None, "home/sessions": None, f"home/sessions/{ID}.jsonl": session}
    for number, content in enumerate(copies):
        tree[f"home/sessions/{ID}-recovery-20260101T000000Z-0000000{number}.jsonl"] = content
    if saved:
        tree["home/saved"] = None
    tree.update({f"home/saved/{name}.jsonl": content for name, content in saved.items()})
    if current:
        tree["home/current"] = current.encode() + b"\n"
    return tree


HOMES: dict[str, Tree] = {
    "nothing": {},
    "an empty home": {"home": None},
    "a session": home(LIVE),
    "a torn session": home(numbered(LIVE, OTHER)[:-30]),
    "an open turn": home(LIVE + b"".join(numbered(LIVE, OTHER).splitlines(keepends=True)[6:7])),
    "an invalid session": home(LIVE[:-1] + b"}\n" + numbered(LIVE, OTHER)[len(LIVE) :]),
    "saved sessions": home(LIVE, work=EARLIER, other=OTHER),
    "a copy of it": home(LIVE, same=LIVE, other=OTHER),
    "a named session": home(LIVE, "work", work=EARLIER, other=OTHER),
    "a secret": home(WITH_SECRET, "", [WITH_SECRET + b'{"v":1,"se'], a=numbered(SECRET, OTHER), b=SECRET, c=EARLIER),
}


class Command(NamedTuple):
    """A command: its words, its lines of input, and the turns that it takes away."""

    words: Sequence[str]
    stdin: str = ""
    removed: bytes = b""


ASK = Command(["ask", "new question"])
RECOVER = Command(["history", "recover"])
SAVE = Command(["session", "save", "other"])
NEW = Command(["session", "new"])
UNDO = Command(["chat"], "/undo\n")
FORGET = Command(["history", "forget", turns_in(SECRET)[0].turn_id], removed=SECRET)
IMPORT = Command(["session", "import", "imported", "FILE", "--from", "messages"])
NEXT = (ASK, NEW, Command(["session", "save", "kept"]), RECOVER)
RUNS = [
    *((place, ASK) for place in ("nothing", "an empty home", "a session", "a torn session", "an open turn")),
    *((place, RECOVER) for place in ("a torn session", "an open turn")),
    ("nothing", Command(["chat"], "one\n/save mine\ntwo\n/undo\n/load mine\nthree\n/clear\nfour\n")),
    ("a named session", Command(["chat"], "one\n/undo\n/load other\ntwo\n")),
    ("an invalid session", Command(["history", "recover", "--salvage"])),
    *((place, NEW) for place in ("a session", "a copy of it", "a named session")),
    *((place, SAVE) for place in ("a session", "saved sessions", "a torn session")),
    ("a copy of it", Command(["session", "save", "same"])),
    *((place, Command(["session", "load", "other"])) for place in ("saved sessions", "a named session")),
    ("a named session", Command(["session", "load", "work"])),
    ("a named session", Command(["session", "open", "other"])),
    ("a named session", Command(["session", "open", "fresh"])),
    ("a named session", Command(["session", "delete", "work"], removed=EARLIER)),
    *((place, IMPORT) for place in ("nothing", "saved sessions")),
    *((place, UNDO) for place in ("a session", "a named session")),
    ("a secret", FORGET),
]


class Moment(NamedTuple):
    """A moment at which a command can be killed: the disk then, and what is known of it."""

    disk: Disk
    facts: Facts
    story: str


class Crashes:
    """All that is tried: `most` states of a moment, and `kills` commands after a kill (None: all of both)."""

    def __init__(self, place: Path, url: str, most: int | None, kills: int | None) -> None:
        self.flaws: list[str] = []
        self.states = 0
        self._place, self._url, self._most, self._kills = place, url, most, kills
        self._chance = random.Random(9)
        self._seen: set[int] = set()

    def run(self) -> None:
        """Run every command, and then the next one after each kill of it."""
        starts = [(Moment(Disk(HOMES[name]), _facts(HOMES[name]), name), command) for name, command in RUNS]
        after = []
        for (start, command), run in zip(starts, self._trace(starts), strict=True):
            if run.status != 0:
                self.flaws.append(f"{start.story}, {_name(command)}: status {run.status}: {run.output}")
            moments = self._try(start, command, run)
            after += [(moment, command) for moment in moments]
            after += [(moment, other) for moment in moments for other in NEXT if other != command]
        if self._kills is not None:
            after = self._chance.sample(after, self._kills)
        for (moment, command), run in zip(after, self._trace(after), strict=True):
            self._try(moment, command, run)

    def _trace(self, starts: Sequence[tuple[Moment, Command]]) -> list[Run]:
        jobs = []
        file = self._place / "texts.json"
        file.write_text(TEXTS)
        for number, (moment, command) in enumerate(starts):
            root = self._place / f"{len(self._seen)}-{number}"
            build(moment.disk.tree(), root)
            words = [str(file) if word == "FILE" else word for word in command.words]
            jobs.append(Job(str(root), "home", words, command.stdin))
        return trace(jobs, self._place, self._url)

    def _try(self, start: Moment, command: Command, run: Run) -> list[Moment]:
        """Cut the power at each moment of `run`; returns those at which a kill leaves something that is not synced."""
        disk, facts = copy.deepcopy(start.disk), copy.deepcopy(start.facts)
        disk.restart()
        facts.saved -= set(turns_in(command.removed))
        moments: list[Moment] = []
        for number, event in enumerate([*run.events, Event("exit")]):
            story = f"{start.story}, {_name(command)} to call {number} ({event.call} {event.path or event.fd})"
            if event.call in ("write", "pwrite") and len(event.data) > 1:
                half = copy.deepcopy(disk)
                half.apply(event._replace(data=event.data[: len(event.data) // 2]))
                self._note(moments, half, facts, story + " by half")
            disk.apply(event)
            facts.originals |= set(_originals(disk.tree(), event))
            if _is_promise(event, command, run):
                facts.saved |= all_turns(disk.tree()) - set(turns_in(command.removed))
                self._hold(disk, command, story)
                self._cut(disk, facts, story)
            if disk.changes(event):
                self._cut(disk, facts, story)
                self._note(moments, disk, facts, story)
        return moments

    def _note(self, moments: list[Moment], disk: Disk, facts: Facts, story: str) -> None:
        if disk.is_pending():
            moments.append(Moment(copy.deepcopy(disk), copy.deepcopy(facts), story + ", killed; then"))

    def _hold(self, disk: Disk, command: Command, story: str) -> None:
        """Nothing that is there now may be lost any more, and nothing that is not may come back."""
        now = _without_lock(disk.tree())
        if any(
            turn.question.encode() in (content or b"") for turn in turns_in(command.removed) for content in now.values()
        ):
            self.flaws.append(f"{story}: what it removed is still there")
        for state in disk.states(None, self._chance):
            state = _without_lock(state)
            if state != now:
                differing = {path for path in {*now, *state} if now.get(path, b"-") != state.get(path, b"-")}
                self.flaws.append(f"{story}: not synced: {', '.join(sorted(differing))}")
                return

    def _cut(self, disk: Disk, facts: Facts, story: str) -> None:
        for state in disk.states(self._most, self._chance):
            key = hash((frozenset(state.items()), frozenset(facts.saved)))
            if key in self._seen:
                continue
            self._seen.add(key)
            self.states += 1
            place = self._place / "cut"
            self.flaws += [f"{story}: {flaw}" for flaw in find_flaws(state, "home", facts, place)]
            shutil.rmtree(place)


def _is_promise(event: Event, command: Command, run: Run) -> bool:
    """Whether `event` says that all is saved: it sends the question, shows the next prompt, or ends with success.

    `history recover` takes no lock, and promises nothing, where there is no session yet. A turn that is not there any
    more is forgotten.
    """
    if event.call == "exit":
        is_writer = any(each.call == "pwrite" for each in run.events)
        return is_writer and (run.status == 0 or (run.status == 66 and command.removed != b""))
    return event.call == "send" or (event.call, event.data) == ("show", b"You> ")


def _facts(tree: Tree) -> Facts:
    files = [content for path, content in tree.items() if content and path.endswith(".jsonl")]
    saved = all_turns(tree)
    known = {(turn.question, turn.answer) for turn in saved} | {("imported question", "imported answer")}
    known |= {(question, ANSWER) for question in ("new question", "one", "two", "three", "four")}
    return Facts(saved, known, set(files), frozenset(file for file in files if b"}}\n" in file))


def _originals(tree: Tree, event: Event) -> Iterator[bytes]:
    """What can have been copied whole: each file as it is now; and what a rename has just made a copy."""
    for path, content in tree.items():
        if content and path.endswith(".jsonl") and (COPY not in path or (event.call, event.other) == ("rename", path)):
            yield content


def _without_lock(tree: Tree) -> Tree:
    return {path: content for path, content in tree.items() if os.path.basename(path) != LOCK}


def _name(command: Command) -> str:
    return " ".join([*command.words[:3], *command.stdin.split("\n")]).strip()


def main(arguments: Sequence[str]) -> int:
    """See the top of this file; the status is 1 if there is a flaw."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.crash_states")
    parser.add_argument("--all", action="store_true", help="every state, not a sample")
    every = parser.parse_args(arguments).all
    os.fsync = lambda fd: None  # here nothing is cut off but in the model, and a sync is slow
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as place, ScriptedServer(always=reply(ANSWER)) as server:
        crashes = Crashes(Path(place).resolve(), server.url, None if every else 2, None if every else 40)
        crashes.run()
    sys.stdout.writelines(f"{flaw}\n" for flaw in crashes.flaws)
    sys.stdout.write(f"{crashes.states} states, {len(crashes.flaws)} flaws\n")
    return 1 if crashes.flaws or not crashes.states else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
