"""The `/` commands of `mino chat`; `mino.sessions` does the work, and their sentences are those of `session`."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from mino.commands.session import format_entries, format_replaced, format_saved, format_undone
from mino.commands.show import format_turn
from mino.errors import MinoError, NotFound, UsageMistake
from mino.home import Home
from mino.journal.loader import Loading
from mino.sessions import saved, switch
from mino.sessions.conversation import Conversation
from mino.sessions.listing import list_sessions

EXIT = "/exit"
HISTORY_TURNS = 10

Run = Callable[[Home, Conversation, str], Iterable[str]]
"""Does a command with the text after its name, and returns the lines to show."""


class Command(NamedTuple):
    """A `/` command; `argument` is `NAME`, which it needs, `[N]`, which it may have, or empty."""

    argument: str
    purpose: str
    run: Run


def run(home: Home, conversation: Conversation, line: str) -> Iterable[str]:
    """Do the `/` command in `line`; returns the lines to show. Raises UsageMistake, NotFound, and as `mino.sessions`.

    The conversation may be another one afterwards. A command that failed has changed nothing.
    """
    name, _, argument = re.split(r"(\s+|$)", line.strip(), maxsplit=1)
    command = COMMANDS.get(name)
    if command is None or "\n" in line.strip():
        raise UsageMistake(
            f"unknown command '{name}'; nothing was sent"
            if command is None
            else f"{name} takes one line; nothing was sent",
            "/help lists the commands; a question that begins with / is written with //",
        )
    if bool(argument) != bool(command.argument) and command.argument != "[N]":
        raise UsageMistake(f"{name} takes " + ("a name" if command.argument else "no argument"), usage(name))
    try:
        return command.run(home, conversation, argument)
    except (NotFound, UsageMistake) as failure:
        raise type(failure)(failure.message, _HINTS.get(failure.hint, failure.hint)) from None


_HINTS = {"mino session list": "/sessions", "mino session --help": "/help"}  # a shell's hints in the words of chat


def usage(name: str) -> str:
    """The command `name` with its argument."""
    return f"{name} {COMMANDS[name].argument}".rstrip()


def complete(home: Home, typed: str) -> tuple[str, list[str]]:
    """The last word of `typed`, and what it may become: the name of a command, or of a saved session after one."""
    name, blank, argument = typed.partition(" ")
    if not blank:
        words = [each + " " * bool(command.argument) for each, command in COMMANDS.items()]
        return name, [word for word in words if name and word.startswith(name)]
    if name not in COMMANDS or COMMANDS[name].argument != "NAME":
        return argument, []
    try:
        names = saved.names(home.saved)
    except MinoError:  # Tab must not print a message
        names = []
    return argument, [each for each in names if each.startswith(argument)]


def _save(home: Home, conversation: Conversation, name: str) -> Iterable[str]:
    return format_saved(switch.save(home, conversation, name), conversation.turns)


def _load(home: Home, conversation: Conversation, name: str) -> Iterable[str]:
    return format_replaced(switch.load(home, conversation, name))


def _sessions(home: Home, conversation: Conversation, argument: str) -> Iterable[str]:
    return format_entries(list_sessions(home))


def _history(home: Home, conversation: Conversation, count: str) -> Iterable[str]:
    if count and not (count.isascii() and count.isdecimal()):
        raise UsageMistake(f"'{count}' is not a number of turns", usage("/history"))
    # The number is cut, because deque does not take one of a thousand digits.
    turns = deque(Loading(conversation.journal.chunks()), int(count[:9]) if count else HISTORY_TURNS)
    if not turns:
        return ["there are no turns yet"]
    return "\n".join(format_turn(turn, in_use=False) for turn in turns).removesuffix("\n").split("\n")


def _clear(home: Home, conversation: Conversation, argument: str) -> Iterable[str]:
    return format_replaced(switch.start(home, conversation))


def _undo(home: Home, conversation: Conversation, argument: str) -> Iterable[str]:
    return format_undone(switch.undo(home, conversation))


def _help(home: Home, conversation: Conversation, argument: str) -> Iterator[str]:
    for name, command in COMMANDS.items():
        yield f"{usage(name):<13} {command.purpose}"
    yield f"{'//...':<13} send a question that begins with /"
    yield "Enter sends, Alt+Enter begins a new line; what is pasted is one question."


def _exit(home: Home, conversation: Conversation, argument: str) -> Iterable[str]:
    return ()  # `chat` leaves before it comes here


COMMANDS: dict[str, Command] = {
    "/save": Command("NAME", "save the conversation as NAME, a checkpoint to come back to", _save),
    "/load": Command("NAME", "go back to the saved session NAME; this one is saved first", _load),
    "/sessions": Command("", "list this conversation and the saved ones", _sessions),
    "/history": Command("[N]", f"show the last N turns ({HISTORY_TURNS})", _history),
    "/clear": Command("", "start an empty conversation; this one is saved first", _clear),
    "/undo": Command("", "remove the last turn; the conversation with it is saved first", _undo),
    "/help": Command("", "show this", _help),
    EXIT: Command("", "leave; so do Ctrl+D and Ctrl+C", _exit),
}
