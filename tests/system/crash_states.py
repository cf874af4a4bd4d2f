"""Gives Mino every disk that a power cut can leave, at each system call of each command that writes.

    python -m tests.system.crash_states --all          every state: some minutes
    python -m tests.system.crash_states --all rename   every state of the commands whose words hold `rename`
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
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from mino.sessions.compact import summary_question
from tests.homes import completed, numbered
from tests.replies import completed as reply
from tests.server import ScriptedServer
from tests.system.crash_check import COPY, Facts, all_turns, build, find_flaws, turns_in
from tests.system.crash_disk import TEMPORARY, Disk, Event, Tree
from tests.system.crash_trace import Job, Run, trace

ID = "0193a0b1c2d37000800000000000000a"
ANSWER = "巴黎 🗼 " * 35  # its records take more than three sectors
EARLIER = completed(("earlier question", "earlier answer"))
LIVE = completed(("live question", "live answer"), ("现场的问题", "现场的回答 🙂" * 30))
OTHER = completed(("other question", "other answer"))
SECRET = completed(("forget 忘记我", "forgotten 回答"))
OLD = [completed((f"old question {number}", "old answer")) for number in range(3)]
STAMP = "-recovery-20260101T000000Z-01234567"
WITH_SECRET = numbered(EARLIER, SECRET, OTHER)
BATCH = 300  # commands that are traced together; each needs a disk in memory
ENOUGH = 200  # flaws, after which no more states are looked at
TEXTS = '[{"role":"user","content":"imported question"},{"role":"assistant","content":"imported answer"}]'


def make(session: bytes, current: str = "", copies: Sequence[bytes] = (), **saved: bytes) -> Tree:
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
    "nothing, and a deep home": {},
    "an empty home": {"home": None},
    "a session": make(LIVE),
    "a torn session": make(numbered(LIVE, OTHER)[:-30]),
    "an open turn": make(LIVE + b"".join(numbered(LIVE, OTHER).splitlines(keepends=True)[6:7])),
    "an invalid session": make(LIVE[:-1] + b"}\n" + numbered(LIVE, OTHER)[len(LIVE) :]),
    "saved sessions": make(LIVE, work=EARLIER, other=OTHER),
    "a copy of it": make(LIVE, same=LIVE, other=OTHER),
    "a named session": make(LIVE, "work", work=EARLIER, other=OTHER),
    "a torn named one": make(LIVE, work=numbered(EARLIER, OTHER)[:-30]),
    "recovery copies": make(LIVE, "work", [], work=EARLIER, **{f"work{STAMP}": numbered(EARLIER, LIVE)}),
    "old copies": make(
        LIVE, "", [OLD[0]], work=EARLIER, **{"auto-20260101T000000Z": OLD[1], "work.~20260101T000000Z~": OLD[2]}
    ),
    "a secret": make(WITH_SECRET, "", [WITH_SECRET + b'{"v":1,"se'], a=numbered(SECRET, OTHER), b=SECRET, c=EARLIER),
}


class Command(NamedTuple):
    """A command: its words, its lines of input, the turns that it takes away, and the conversation that it writes."""

    words: Sequence[str]
    stdin: str = ""
    removed: bytes = b""
    name: str = ""


ASK = Command(["ask", "new question"])
RECOVER = Command(["history", "recover"])
SAVE = Command(["session", "save", "other"], name="other")
NEW = Command(["session", "new"])
UNDO = Command(["chat"], "/undo\n")
COMPACT = Command(["history", "compact", "--keep", "1"])
FORGET = Command(["history", "forget", turns_in(SECRET)[0].turn_id], removed=SECRET)
IMPORT = Command(["session", "import", "imported", "FILE", "--from", "messages"], name="imported")
ASK_WORK = Command(["ask", "new question", "--session", "work"], name="work")
ASK_THIRD = Command(["ask", "new question", "--session", "第三"], name="第三")
OPEN_WORK = Command(["session", "open", "work"], name="work")
RENAME = Command(["session", "rename", "work", "final"], name="final")
CURRENT = ("open", "new", "load", "rename", "delete")  # what changes which conversation is current


def next_commands(command: Command) -> list[Command]:
    """What is run after a kill of `command`: itself, others that take the same lock, and writers of others."""
    if command.stdin.count("\n") > 1:  # it has a hundred moments, and is made of what other commands do
        return [command, ASK]
    if not command.name:
        return [command, *(each for each in (ASK, NEW, RECOVER, ASK_WORK, OPEN_WORK) if each != command)]
    ask = Command(["ask", "new question", "--session", command.name], name=command.name)
    recover = Command(["history", "recover", "--session", command.name], name=command.name)
    return [command, *(each for each in (ask, recover, ASK, ASK_THIRD) if each != command)]


RUNS = [
    *(
        (place, ASK)
        for place in (
            "nothing",
            "nothing, and a deep home",
            "an empty home",
            "a session",
            "a torn session",
            "an open turn",
        )
    ),
    *((place, RECOVER) for place in ("a torn session", "an open turn")),
    ("nothing", Command(["chat"], "one\n/save mine\ntwo\n/undo\n/load mine\nthree\n/clear\nfour\n")),
    ("a named session", Command(["chat"], "one\n/undo\n/load other\ntwo\n")),
    ("an invalid session", Command(["history", "recover", "--salvage"])),
    *((place, NEW) for place in ("a session", "a copy of it", "a named session")),
    *((place, SAVE) for place in ("a session", "saved sessions", "a torn session")),
    ("a copy of it", Command(["session", "save", "same"], name="same")),
    *((place, Command(["session", "load", "other"])) for place in ("saved sessions", "a named session")),
    ("a named session", Command(["session", "load", "work"])),
    *(("a named session", Command(["session", "open", name], name=name)) for name in ("other", "fresh")),
    ("a named session", Command(["session", "open"])),
    (
        "recovery copies",
        Command(["session", "delete", "work"], removed=EARLIER, name="work"),
    ),
    ("recovery copies", RENAME),
    ("old copies", Command(["session", "clean", "--older", "0"], removed=b"".join(OLD))),
    *((place, ASK_WORK) for place in ("nothing", "an empty home", "a session", "saved sessions", "a torn named one")),
    ("a torn named one", Command(["history", "recover", "--session", "work"], name="work")),
    ("saved sessions", Command(["chat"], "one\n/open work\ntwo\n/open fresh\nthree\n/open\nfour\n")),
    ("saved sessions", Command(["chat", "--session", "work"], "one\n/undo\n/clear\ntwo\n", name="work")),
    *((place, IMPORT) for place in ("nothing", "saved sessions")),
    *((place, UNDO) for place in ("a session", "a named session")),
    *((place, COMPACT) for place in ("a session", "a copy of it", "a torn session")),
    ("saved sessions", Command(["history", "compact", "--keep", "0", "--session", "work"], name="work")),
    ("a session", Command(["chat"], "/compact 1\none\n/compact 0\n")),
    ("a secret", FORGET),
]


class Moment(NamedTuple):
    """A moment at which a command can be killed: the disk then, and what is known of it."""

    disk: Disk
    facts: Facts
    story: str
    home: str


class Crashes:
    """All that is tried: `most` states of a moment, and `kills` of the commands after a kill (None: all)."""

    def __init__(self, place: Path, url: str, most: int | None, kills: int | None, only: str) -> None:
        self.flaws: list[str] = []
        self.states = 0
        self._place, self._url, self._most, self._kills = place, url, most, kills
        self._only = only
        self._chance = random.Random(9)
        self._seen: set[int] = set()

    def run(self) -> None:
        """Run every command, and then the next one after each kill of it."""
        starts = [
            (Moment(Disk(HOMES[name]), _facts(HOMES[name]), name, "a/b/home" if "deep" in name else "home"), command)
            for name, command in RUNS
            if self._only in f"{name}, {_name(command)}"
        ]
        after: list[tuple[Moment, Command]] = []
        for (start, command), run in zip(starts, self._trace(starts), strict=True):
            if run.status != 0:
                self.flaws.append(f"{start.story}, {_name(command)}: status {run.status}: {run.output}")
            killed = self._try(start, command, run)
            next_ones = [(moment, other) for moment in killed for other in next_commands(command)]
            kills = len(next_ones) if self._kills is None else min(self._kills, len(next_ones))
            after += self._chance.sample(next_ones, kills)
        for first in range(0, len(after), BATCH):
            batch = after[first : first + BATCH]
            for (moment, command), run in zip(batch, self._trace(batch), strict=True):
                self._try(moment, command, run)

    def _trace(self, starts: Sequence[tuple[Moment, Command]]) -> list[Run]:
        jobs = []
        place = Path(tempfile.mkdtemp(dir=self._place))
        file = place / "texts.json"
        file.write_text(TEXTS)
        for number, (moment, command) in enumerate(starts):
            root = place / str(number)
            build(moment.disk.tree(), root)
            words = [str(file) if word == "FILE" else word for word in command.words]
            jobs.append(Job(str(root), moment.home, words, command.stdin))
        runs = trace(jobs, place, self._url)
        shutil.rmtree(place)
        return runs

    def _try(self, start: Moment, command: Command, run: Run) -> list[Moment]:
        """Cut the power at each moment of `run`; returns those at which a kill leaves something that is not synced."""
        disk, facts = copy.deepcopy(start.disk), copy.deepcopy(start.facts)
        disk.restart()
        facts.saved -= set(turns_in(command.removed))
        facts.renames = facts.renames or "rename" in command.words
        touched: set[str] = set()
        moments: list[Moment] = []
        for number, event in enumerate([*run.events, Event("exit")]):
            story = f"{start.story}, {_name(command)} to call {number} ({event.call} {event.path or event.fd})"
            if event.call in ("write", "pwrite") and len(event.data) > 1:
                half = copy.deepcopy(disk)
                half.apply(event._replace(data=event.data[: len(event.data) // 2]))
                self._note(moments, half, facts, story + " by half", start.home)
            disk.apply(event)
            # To look into a folder is not to rely on its entry; and a turn is safe whichever conversation is current.
            if event.call != "open" or not (_is_current(event.path) or disk.tree().get(event.path) is None):
                touched |= {event.path, event.other}
            facts.originals |= set(_originals(disk.tree(), event))
            if _is_promise(event, command, run):
                unsettled = disk.unsettled()
                settled = {path: content for path, content in disk.tree().items() if path not in unsettled}
                facts.saved |= all_turns(settled) - set(turns_in(command.removed))
                self._hold(disk, command, story, touched)
                self._cut(disk, facts, story, start.home)
            if disk.changes(event):
                self._cut(disk, facts, story, start.home)
                self._note(moments, disk, facts, story, start.home)
        return moments

    def _note(self, moments: list[Moment], disk: Disk, facts: Facts, story: str, home: str) -> None:
        last = moments[-1] if moments else None
        if last and (disk.history(), facts.saved) == (last.disk.history(), last.facts.saved):
            return
        if disk.unsettled():
            moments.append(Moment(copy.deepcopy(disk), copy.deepcopy(facts), story + ", killed; then", home))

    def _hold(self, disk: Disk, command: Command, story: str, touched: Set[str]) -> None:
        """Nothing that is there now may be lost any more, and nothing that is not may come back.

        What another command left of other conversations is that of those, whose next writer syncs it.
        """
        now = disk.tree()
        if any(
            turn.question.encode() in (content or b"") for turn in turns_in(command.removed) for content in now.values()
        ):
            self.flaws.append(f"{story}: what it removed is still there")
        name = command.name
        if command.words[0] != "session" and not name:  # then it means the current conversation
            name = next(
                (content.decode().strip() for path, content in now.items() if content and _is_current(path)), ""
            )
        paths = [path for path in disk.unsettled() if path in touched or _concerns(command, name, path, now)]
        if paths:
            self.flaws.append(f"{story}: not synced: {', '.join(paths)}")

    def _cut(self, disk: Disk, facts: Facts, story: str, home: str) -> None:
        for state in disk.states() if self._most is None else disk.sample(self._most, self._chance):
            if len(self.flaws) > ENOUGH:
                return
            key = hash((frozenset(state.items()), frozenset(facts.saved)))
            if key in self._seen:
                continue
            self._seen.add(key)
            self.states += 1
            place = self._place / "cut"
            self.flaws += [f"{story}: {flaw}" for flaw in find_flaws(state, home, facts, place)]
            shutil.rmtree(place)


def _is_current(path: str) -> bool:
    return os.path.basename(path) == "current"


def _concerns(command: Command, conversation: str, path: str, now: Tree) -> bool:
    """Whether `command`, which writes `conversation`, relies on what is at `path`, though it does not touch it."""
    folder, name = os.path.split(path)
    own, others = ("saved", "sessions") if conversation else ("sessions", "saved")
    if _is_current(path):  # a temporary file of it is removed by the next command that changes it
        return command.words[1:2] != [] and command.words[1] in CURRENT
    if own == os.path.basename(folder):
        # A copy like `work.~…~` is removed as a conversation of its own: who is killed meanwhile promised nothing.
        return name.startswith(conversation) and not (name.startswith(f"{conversation}.~") and path not in now)
    return others not in (name, os.path.basename(folder)) and not name.startswith(TEMPORARY)


def _is_promise(event: Event, command: Command, run: Run) -> bool:
    """Whether `event` says that all is saved: it sends the question, shows the next prompt, or ends with success.

    `history recover` takes no lock, and promises nothing, where there is no session yet. A turn that is not there any
    more is forgotten.
    """
    if event.call == "exit":
        is_writer = any(each.call == "pwrite" for each in run.events) or "open" in command.words
        return is_writer and (run.status == 0 or (run.status == 66 and command.removed != b""))
    return event.call == "send" or (event.call, event.data) == ("show", b"You> ")


def _facts(tree: Tree) -> Facts:
    files = [content for path, content in tree.items() if content and path.endswith(".jsonl")]
    saved = all_turns(tree)
    known = {(turn.question, turn.answer) for turn in saved} | {("imported question", "imported answer")}
    known |= {(question, ANSWER) for question in ("new question", "one", "two", "three", "four")}
    known |= {(summary_question(each), ANSWER) for each in ("live question", "earlier question")}
    session = tree.get(f"home/sessions/{ID}.jsonl") or b""
    damaged = frozenset([session] if b"}}\n" in session or not session.endswith(b"\n") else []) - {b""}
    return Facts(saved, known, set(files), damaged)


def _originals(tree: Tree, event: Event) -> Iterator[bytes]:
    """What can have been copied whole: each file as it is now; and what a rename has just made a copy."""
    for path, content in tree.items():
        if content and path.endswith(".jsonl") and (COPY not in path or (event.call, event.other) == ("rename", path)):
            yield content


def _name(command: Command) -> str:
    return " ".join([*command.words[:3], *command.stdin.split("\n")]).strip()


def main(arguments: Sequence[str]) -> int:
    """See the top of this file; the status is 1 if there is a flaw."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.crash_states")
    parser.add_argument("--all", action="store_true", help="every state, not a sample")
    parser.add_argument("only", nargs="?", default="", help="only the homes and commands whose words hold this")
    chosen = parser.parse_args(arguments)
    os.fsync = lambda fd: None  # here nothing is cut off but in the model, and a sync is slow
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as place, ScriptedServer(always=reply(ANSWER)) as server:
        most = None if chosen.all else 2
        crashes = Crashes(Path(place).resolve(), server.url, most, most, chosen.only)
        crashes.run()
    sys.stdout.writelines(f"{flaw}\n" for flaw in crashes.flaws)
    sys.stdout.write(f"{crashes.states} states, {len(crashes.flaws)} flaws\n")
    return 1 if crashes.flaws or not crashes.states else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
