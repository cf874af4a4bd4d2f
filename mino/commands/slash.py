"""The `/` commands of `mino chat`; `mino.sessions` does the work, and their sentences are those of `session`."""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from mino.attachments import Attached
from mino.commands import compact
from mino.commands.session import format_entries, format_loaded, format_saved, format_started, format_undone
from mino.commands.show import format_turn
from mino.errors import Interrupted, MinoError, NotFound, UsageMistake
from mino.home import Home
from mino.journal.loader import Loading
from mino.model import Model
from mino.responses.parts import describe, text_part
from mino.sessions import saved, switch
from mino.sessions.compact import KEPT_TURNS, choose
from mino.sessions.held import Held
from mino.sessions.listing import list_sessions
from mino.sessions.place import Place
from mino.terminal import output
from mino.text import count

EXIT = "/exit"
DROP = "-"  # what /attach takes to forget the files
HISTORY_TURNS = 10


class Talk(NamedTuple):
    """What a command of a chat works with: its conversation, its model, the files for the next question."""

    held: Held
    model: Model
    attached: Attached


Run = Callable[[Talk, str], Iterable[str]]
"""Does a command with the text after its name, and returns the lines to show."""


class Command(NamedTuple):
    """A `/` command; `argument` is what it needs, or in brackets what it may have, or empty."""

    argument: str
    purpose: str
    run: Run


def is_command(text: str) -> bool:
    """Whether `text` is for the chat: it begins with one slash, or is the word by which people leave other programs."""
    said = text.strip()
    return said.lower() in _FAREWELLS or (said.startswith("/") and not said.startswith("//"))


_FAREWELLS = ("exit", "quit")


def run(talk: Talk, line: str) -> Iterable[str]:
    """Do the `/` command in `line`; returns the lines to show. Raises UsageMistake, NotFound, and as `mino.sessions`.

    The chat may hold another conversation afterwards. A command that failed has changed nothing.
    """
    name, _, argument = re.split(r"(\s+|$)", line.strip(), maxsplit=1)
    command = COMMANDS.get(name)
    if command is None or "\n" in line.strip():
        raise UsageMistake(
            f"unknown command '{name}'; nothing was sent"
            if command is None
            else f"{name} takes one line; nothing was sent",
            "/exit leaves the chat"
            if name.lower().lstrip("/") in _FAREWELLS
            else "/help lists the commands; a question that begins with / is written with //",
        )
    if bool(argument) != bool(command.argument) and not command.argument.startswith("["):
        raise UsageMistake(f"{name} takes " + ("a name" if command.argument else "no argument"), usage(name))
    try:
        return command.run(talk, argument)
    except (NotFound, UsageMistake) as failure:
        raise type(failure)(failure.message, _HINTS.get(failure.hint, failure.hint)) from None


_HINTS = {"mino session list": "/sessions", "mino session --help": "/help"}  # a shell's hints in the words of chat


def usage(name: str) -> str:
    """The command `name` with its argument."""
    return f"{name} {COMMANDS[name].argument}".rstrip()


def complete(home: Home, typed: str) -> tuple[str, list[str]]:
    """The last word of `typed`, and what it may become: the name of a command, or of a conversation after one."""
    name, blank, argument = typed.partition(" ")
    if not blank:
        words = [each + " " * bool(command.argument) for each, command in COMMANDS.items()]
        return name, [word for word in words if name and word.startswith(name)]
    if name == "/attach":
        return argument, _complete_path(argument)
    if name not in COMMANDS or "NAME" not in COMMANDS[name].argument:
        return argument, []
    try:
        names = saved.names(home.saved)
    except MinoError:  # Tab must not print a message
        names = []
    return argument, [each for each in names if each.startswith(argument)]


def _complete_path(typed: str) -> list[str]:
    folder, beginning = os.path.split(typed)
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            found = sorted(entry.name + "/" * entry.is_dir() for entry in entries)
    except OSError:  # Tab must not print a message
        return []
    return [
        os.path.join(folder, name)
        for name in found
        if name.startswith(beginning) and (beginning or not name.startswith("."))  # as in a shell
    ]


def _save(talk: Talk, name: str) -> Iterable[str]:
    if talk.held.conversation.place == Place(talk.held.home, name):
        return [f"this is the conversation '{name}'; there is nothing to save"]
    return format_saved(talk.held.save(name))


def _load(talk: Talk, name: str) -> Iterable[str]:
    with (
        saved.open_ended(switch.find(talk.held.home, name)) as found,
        talk.held.move(None, replace_invalid=True),
        saved.renewed(found) as content,
    ):
        kept = switch.load(talk.held.conversation, content)
    return format_loaded(name, content.turns, kept)


def _open(talk: Talk, name: str) -> Iterable[str]:
    if name:
        saved.path_of(talk.held.home.saved, name)
    with talk.held.move(name or None):
        pass
    turns = count(talk.held.conversation.turns, "turn")
    return [f"opened '{name}': {turns}" if name else f"opened the unnamed conversation: {turns}"]


def _sessions(talk: Talk, argument: str) -> Iterable[str]:
    return format_entries(list_sessions(talk.held.home, output.notice))


def _history(talk: Talk, number: str) -> Iterable[str]:
    turns = deque(Loading(talk.held.conversation.journal.chunks()), _read_number(number, "/history", HISTORY_TURNS))
    if not turns:
        return ["there are no turns yet"]
    return "\n".join(format_turn(turn, in_use=False) for turn in turns).removesuffix("\n").split("\n")


def _read_number(text: str, command: str, default: int) -> int:
    if text and not (text.isascii() and text.isdecimal()):
        raise UsageMistake(f"'{text}' is not a number of turns", usage(command))
    return int(text[:9]) if text else default  # cut, because deque does not take a number of a thousand digits


def _clear(talk: Talk, argument: str) -> Iterable[str]:
    with talk.held.move(None, replace_invalid=True):
        kept = switch.start(talk.held.conversation)
    return format_started(kept)


def _undo(talk: Talk, argument: str) -> Iterable[str]:
    return format_undone(switch.undo(talk.held.conversation))


def _compact(talk: Talk, number: str) -> Iterable[str]:
    keep, conversation = _read_number(number, "/compact", KEPT_TURNS), talk.held.conversation
    part = choose(conversation, keep)
    if part is None:
        return [compact.format_nothing(keep)]
    smaller = compact.smaller_part(part)
    less = f"/compact {smaller} sums up fewer turns" if smaller else "/clear starts an empty conversation"
    before = conversation.journal
    try:
        compact.run(conversation, talk.model, part, less, lambda sentence: output.show(sentence + "\n"))
    except Interrupted:
        now = "as it was" if conversation.journal is before else "compacted"
        output.notice(f"left the chat; the conversation is {now}")
        raise
    return ()


def _attach(talk: Talk, path: str) -> Iterable[str]:
    attached = talk.attached
    if path == DROP:
        attached.drop()
        return ["no file is attached now"]
    if path:
        described = describe([*attached.add(os.path.expanduser(path)), text_part("")])
        return [f"attached to the next question: {line}" for line in described]
    held = list(describe([*attached.parts, text_part("")]))
    return [*held, f"/attach {DROP} drops them"] if held else ["no file is attached"]


def _help(talk: Talk, argument: str) -> Iterator[str]:
    for name, command in COMMANDS.items():
        yield f"{usage(name):<13} {command.purpose}"
    yield f"{'//...':<13} send a question that begins with /"
    yield "Enter sends, Alt+Enter begins a new line; what is pasted is one question."


def _exit(talk: Talk, argument: str) -> Iterable[str]:
    return ()  # `chat` leaves before it comes here


COMMANDS: dict[str, Command] = {
    "/save": Command("NAME", "save the conversation as NAME, a checkpoint to come back to", _save),
    "/load": Command("NAME", "go on with a copy of NAME; this conversation is saved first", _load),
    "/open": Command("[NAME]", "go on with the conversation NAME itself, or the unnamed one", _open),
    "/sessions": Command("", "list the conversations", _sessions),
    "/history": Command("[N]", f"show the last N turns ({HISTORY_TURNS})", _history),
    "/clear": Command("", "start an empty conversation; this one is saved first", _clear),
    "/undo": Command("", "remove the last turn; the conversation with it is saved first", _undo),
    "/compact": Command("[N]", f"replace all turns but the last N ({KEPT_TURNS}) by a summary; all is saved", _compact),
    "/attach": Command("[FILE]", "send a picture, PDF or text with the next question", _attach),
    "/help": Command("", "show this", _help),
    EXIT: Command("", "leave; so do Ctrl+D and Ctrl+C", _exit),
}
