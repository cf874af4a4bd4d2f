"""What must be true of a disk that a crash left, and what Mino must make of it."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mino import disk
from mino.errors import InvalidData, MinoError
from mino.home import Home
from mino.journal.record import assistant_message, turn_end, user_message
from mino.sessions import saved
from mino.sessions.conversation import open_place
from mino.sessions.place import Place, current_name
from tests.homes import state_of
from tests.system.crash_disk import TEMPORARY, Tree

SESSION = re.compile(r".*/sessions/[0-9a-f]{32}\.jsonl")
COPY = "-recovery-"
NEXT = "0193a0b1c2d3700080000000000000ff"


class Whole(NamedTuple):
    """A completed turn with its question and its answer."""

    turn_id: str
    question: str
    answer: str


@dataclass
class Facts:
    """What is known about the conversations of a disk.

    `saved` turns must be there. `known` are the questions and answers that there can be. A file that bears the name of
    a recovery copy is one of the `originals`. A `damaged` session must be kept whole: it, or a copy of it. While a
    conversation is being renamed, `current` may name one that is not there.
    """

    saved: set[Whole] = field(default_factory=set)
    known: set[tuple[str, str]] = field(default_factory=set)
    originals: set[bytes] = field(default_factory=set)
    damaged: frozenset[bytes] = frozenset()
    renames: bool = False


def turns_in(content: bytes) -> list[Whole]:
    """The completed turns of a file, by the lines that can be read: no loader of Mino's is asked."""
    turns: dict[str, dict[str, str]] = {}
    for line in content.split(b"\n")[:-1]:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "turn_id" in record:
            turn = turns.setdefault(record["turn_id"], {})
            turn[record["type"]] = record.get("text") or record.get("status", "")
    return [
        Whole(turn_id, turn["user_message"], turn["assistant_message"])
        for turn_id, turn in turns.items()
        if turn.get("turn_end") == "completed" and len(turn) == 3
    ]


def all_turns(tree: Tree) -> set[Whole]:
    """The completed turns of all files that count."""
    return {turn for path, content in tree.items() if content and not is_temporary(path) for turn in turns_in(content)}


def is_temporary(path: str) -> bool:
    return os.path.basename(path).startswith(TEMPORARY)


def find_flaws(tree: Tree, home: str, facts: Facts, place: Path) -> list[str]:
    """What is wrong with the disk `tree`, and with what Mino makes of it in `place`, which must be empty."""
    flaws = [f"the turn {turn.turn_id} is lost" for turn in facts.saved - all_turns(tree)]
    if not all(any((content or b"").startswith(damaged) for content in tree.values()) for damaged in facts.damaged):
        flaws.append("the damaged session is nowhere whole")
    session = b""
    for path, content in tree.items():
        if content is None or is_temporary(path) or not path.endswith(".jsonl"):
            continue
        if SESSION.fullmatch(path):
            session = content
        elif COPY in path:
            if content not in facts.originals:
                flaws.append(f"{path} is not a whole copy")
        elif content not in facts.damaged and state_of(content) != "clean" and saved.is_automatic(Path(path).stem):
            flaws.append(f"{path} is {state_of(content)}")
    build(tree, place)
    where = Home(str(place / home), is_default=False)
    current = current_name(where, flaws.append)
    if current and current not in saved.names(where.saved) and not facts.renames:
        flaws.append(f"the current conversation '{current}' is not there")
    contents = {name: tree.get(f"{home}/saved/{name}.jsonl") or b"" for name in saved.names(where.saved)}
    for name, before in [(None, session), *contents.items()]:
        try:
            flaws += _go_on(Place(where, name), facts, before)
        except InvalidData as failure:
            if before not in facts.damaged:
                flaws.append(failure.message)
        except MinoError as failure:
            flaws.append(failure.message)
    left = [each for each in (place / home).glob(f"*/{TEMPORARY}*") if _owner(each) in ("", *contents)]
    return flaws + [f"{each} was left" for each in left]


def _owner(path: Path) -> str:
    """The conversation under whose lock the temporary file at `path` was written."""
    found = disk.TEMPORARY.fullmatch(path.name)
    assert found
    return found[1]


def build(tree: Tree, place: Path) -> None:
    """Write the disk `tree` into the directory `place`."""
    place.mkdir(mode=0o700, exist_ok=True)
    for path, content in sorted(tree.items()):
        if content is None:
            (place / path).mkdir(mode=0o700)
        else:
            (place / path).write_bytes(content)
            (place / path).chmod(0o600)


def _go_on(where: Place, facts: Facts, before: bytes) -> list[str]:
    """Open the conversation, and save one more turn in it."""
    with open_place(where, 0, lambda _: None) as conversation:
        pairs = [(turn.user, turn.assistant or "") for turn in conversation.context]
        flaws = [f"half a turn is in the context: {pair}" for pair in pairs if pair not in facts.known]
        seq = conversation.journal.seq
        conversation.append(user_message(seq, NEXT, "next"))
        conversation.append(assistant_message(seq + 1, NEXT, "next", None), turn_end(seq + 2, NEXT, "completed"))
        path = Path(conversation.journal.path)
    after = path.read_bytes()
    if state_of(after) != "clean" or Whole(NEXT, "next", "next") not in turns_in(after):
        flaws.append(f"{where} is {state_of(after)} after the next turn")
    kept = set(turns_in(before)) - set(turns_in(after))
    if kept:
        flaws.append(f"the next turn removed {len(kept)} others")
    copies = [each.read_bytes() for each in path.parent.iterdir() if each.name.startswith(path.stem + COPY)]
    if not after.startswith(before) and before not in copies:
        flaws.append("something was cut without a copy")
    return flaws
