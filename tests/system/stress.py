"""Random commands on one home by several processes at once, some of them killed, and what must be true afterwards."""

import json
import random
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mino import disk
from mino.home import Home
from mino.sessions import saved
from mino.sessions.conversation import open_place
from mino.sessions.place import Place
from tests.homes import state_of
from tests.system.crash_check import turns_in
from tests.system.program import PATIENCE, Ended, Program, check_messages

NAMES = ("work", "日记 🌱", "c", "draft", "final")
KILLED = -9
# An ordinary end: done; not there; a name is taken; in use.
ENDS = (0, 66, 73, 75, KILLED)
OPERATIONS = {
    "ask": 6,
    "ask --session": 8,
    "open": 3,
    "new": 2,
    "load": 2,
    "save": 3,
    "rename": 3,
    "delete": 1,
    "clean": 1,
    "forget": 1,
    "list": 1,
}


class Asked(NamedTuple):
    """A turn that `ask` said is saved: the conversation that it said (None: the unnamed one), and when it began."""

    turn_id: str
    question: str
    session: str | None
    start: float


class Done(NamedTuple):
    """An operation: its kind, the names in it, and how and when it ended."""

    kind: str
    names: Sequence[str]
    ended: Ended
    start: float
    end: float

    @property
    def killed(self) -> bool:
        return self.ended.status == KILLED

    def said(self, pattern: str) -> list[str]:
        """What stands between the quotes of that sentence on stderr."""
        return re.findall(pattern, self.ended.err)


@dataclass
class Stress:
    """What several threads do to one home; `seed` decides what, but not which process the kernel runs first."""

    mino: Program
    seed: int
    asked: list[Asked] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _errors: list[BaseException] = field(default_factory=list)

    def run(self, operations: int, workers: int) -> None:
        """Do that many operations, shared by that many threads."""
        threads = [
            threading.Thread(target=self._work, args=(number, operations // workers)) for number in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _work(self, worker: int, operations: int) -> None:
        chance = random.Random(f"{self.seed} {worker}")
        try:
            for number in range(operations):
                self._do(chance, f"问 {worker}.{number}")
        except BaseException as error:
            self._errors.append(error)

    def _do(self, chance: random.Random, question: str) -> None:
        kind = chance.choices([*OPERATIONS], [*OPERATIONS.values()])[0]
        names: list[str] = chance.sample(NAMES, 2)
        kill_after = chance.uniform(0.5, 1.1) * self._typical() if chance.random() < 0.3 else None
        words = ["session", kind, "--wait", "30"]
        if kind.startswith("ask"):
            names = names[:1] if kind != "ask" else []
            words = ["ask", "--wait", "30", "--json", question, *(f"--session={name}" for name in names)]
        elif kind == "forget":
            with self._lock:
                names = [chance.choice(self.asked).turn_id] if self.asked else ["0" * 32]
            words = ["history", "forget", "--wait", "30", *names]
        elif kind == "open":
            names = names[: chance.randrange(2)]
            words += names
        elif kind in ("new", "list", "clean"):
            names = []
            words = [*words[:2], "--older", "0"] if kind == "clean" else words[: 4 if kind == "new" else 2]
        else:
            names = names[: 2 if kind == "rename" else 1]
            words += names
        start = time.monotonic()
        ended = self._run(words, kill_after)
        done = Done(kind, names, ended, start, time.monotonic())
        assert ended.status in ENDS, (words, ended)
        with self._lock:
            self.done.append(done)
            if ended.out and kind.startswith("ask"):
                answer = json.loads(ended.out)
                assert answer["text"] == f"答 {question}", answer
                self.asked.append(Asked(answer["turn_id"], question, answer["session"], start))

    def _typical(self) -> float:
        """How long a command takes on this machine, in seconds: its first half is the start of Python."""
        with self._lock:
            times = [each.end - each.start for each in self.done[-20:] if not each.killed]
        return sum(times) / len(times) if times else 0.5

    def _run(self, words: Sequence[str], kill_after: float | None) -> Ended:
        process = self.mino.start(*words)
        if kill_after is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(kill_after)
            process.kill()
        out, err = process.communicate(timeout=PATIENCE)
        ended = Ended(process.returncode, out, err)
        if ended.status != KILLED:
            check_messages(ended.err)
        return ended

    # What must be true afterwards

    def flaws(self) -> Iterator[str]:
        """What is wrong with the home, now that all has ended."""
        home = self.mino.home
        held = {_name_of(path): path.read_bytes() for path in home.glob("s*/*.jsonl") if "-recovery-" not in path.name}
        for name, content in held.items():
            if state_of(content) == "invalid":
                yield f"{name} is invalid"
            turns = turns_in(content)
            yield from (f"{name} has half a turn: {turn}" for turn in turns if turn.answer != f"答 {turn.question}")
            yield from (f"{name} has a turn twice" for _ in range(len(turns) - len(set(turns))))
        ids = {name: {turn.turn_id for turn in turns_in(content)} for name, content in held.items()}
        for turn in self.asked:
            forgotten = [each for each in self.done if each.kind == "forget" and turn.turn_id in each.names]
            if not any(each.killed or each.ended.status == 0 for each in forgotten):
                if not self._is_kept(turn.turn_id, turn.session, turn.start, ids, set()):
                    yield f"{turn} is lost"
            elif any(each.ended.status == 0 and not self._is_copied_during(each) for each in forgotten):
                places = [name for name, found in ids.items() if turn.turn_id in found]
                yield from (f"{turn} was forgotten, and is in {name}" for name in places)

    def _is_copied_during(self, forgetting: Done) -> bool:
        """Whether a command copied a conversation, without its lock, at the same time."""
        times = [(each.start, each.end) for each in self.done if each.kind in ("save", "load")]
        return any(start < forgetting.end and end > forgetting.start for start, end in times)

    def _is_kept(
        self, turn_id: str, name: str | None, since: float, ids: dict[str | None, set[str]], seen: set[str | None]
    ) -> bool:
        """Whether the turn is in the conversation `name`, or where a command put that, or was deleted with it."""
        if turn_id in ids.get(name, ()):
            return True
        seen.add(name)
        for each in self.done:
            if each.end < since or not (each.killed or each.ended.status == 0):
                continue
            targets = self._targets(each, name, [*ids])
            if targets is None:
                return True
            if any(self._is_kept(turn_id, target, each.start, ids, seen) for target in targets if target not in seen):
                return True
        return False

    def _targets(self, each: Done, name: str | None, there: Sequence[str | None]) -> Sequence[str | None] | None:
        """Where an operation put what the conversation `name` had; None if it removed it."""
        if name is None:
            if each.kind not in ("new", "load"):
                return ()
            # One that was killed did not come to say where: in a copy, or in one that held the same already.
            return there if each.killed else each.said(r"saved as '(.*)'")
        if each.kind == "delete" and name in each.names:
            return None
        if (
            each.kind == "clean"
            and saved.is_automatic(name)
            and (each.killed or f"/{name}.jsonl: rem" in each.ended.out)
        ):
            return None
        if each.kind == "rename" and each.names[0] == name:
            return [each.names[1]]
        if each.kind == "save" and each.names == [name]:
            kept = [other for other in there if other and other.startswith(f"{name}.~")]
            return kept if each.killed else each.said(r"is kept as '(.*)'")
        return ()

    def left(self) -> Iterator[str]:
        """Locks and temporary files that are left after the next writer of each conversation."""
        home = Home(str(self.mino.home), is_default=False)
        for name in (None, *saved.names(home.saved)):
            with open_place(Place(home, name), 0, lambda _: None):
                pass
        assert self.mino.run("session", "clean", "--older", "9999").status == 0
        for path in sorted(self.mino.home.glob("*/*")):
            if disk.TEMPORARY.fullmatch(path.name):
                yield f"{path} is left"
            elif path.suffix == ".lock" and (path.read_bytes() or not path.with_suffix(".jsonl").exists()):
                yield f"{path} is left, with {path.read_bytes()!r}"
            elif path.suffix == ".jsonl" and "-recovery-" not in path.name and state_of(path.read_bytes()) != "clean":
                yield f"{path} is not clean"


def _name_of(path: Path) -> str | None:
    return None if path.parent.name == "sessions" else path.stem
