"""The command line: every command, option and help sentence, and the only place that makes an exit status.

What a command does is in `mino.commands`, imported when it runs, so that `mino --version` does not pay for a turn.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C ends the process like any signal where nothing has to be saved, and not in a traceback: see mino.signals.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import gc
import io
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

# A short command makes little garbage and many objects that stay: looking through them again and again is a tenth of
# its time. Garbage is still found, in larger heaps.
gc.set_threshold(200_000)
# The libraries' own warnings are for programmers, and every line on stderr is Mino's.
if not sys.warnoptions:
    warnings.simplefilter("ignore")

import click

from mino import __version__, signals, terminal
from mino.errors import Interrupted, MinoError, ReaderGone, StorageFailed

if TYPE_CHECKING:
    from mino.home import Home

Command = TypeVar("Command", bound=Callable[..., Any])

EXIT_STATUS = (
    "Exit status: 0 done, 1 recovery would change the file, 2 usage, 3 answer cut short, 65 invalid history or prompt, "
    "66 not there, 69 service failed, 70 defect in Mino, 73 cannot create, 74 reading or writing failed, 75 in use, "
    "77 no access, 78 configuration. See mino(1)."
)


@click.group(epilog=EXIT_STATUS, no_args_is_help=False)
@click.option("--home", metavar="DIR", help="Where everything lies; else MINO_HOME, else ~/.mino.")
@click.version_option(__version__, prog_name="mino", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, home: str | None) -> None:
    """Ask language models from a shell, and keep the conversation in one crash-safe file."""
    terminal.name_home(home)
    context.obj = home


# Of a command that needs the session for itself.
wait_option = click.option("--wait", metavar="SECONDS", help="How long to wait for a session that is in use (0).")


def server_options(command: Command) -> Command:
    """The options of a command that asks a model; their values are read in `mino.settings`, wherever they come from."""
    options = [
        click.option("-m", "--model", metavar="NAME", help="The model to ask."),
        click.option("--base-url", metavar="URL", help="The server, used as given, /v1 included."),
        click.option("--local", is_flag=True, default=None, help="Use the embedded llama.cpp engine; no key is sent."),
        click.option("--context", metavar="all|none|N", help="How many earlier completed turns are sent (all)."),
        click.option("--instructions", metavar="FILE", help="Instructions for the model, instead of SOUL.md."),
        wait_option,
        click.option("--timeout", metavar="SECONDS", help="How long the service may be silent (300)."),
        click.option("--retries", metavar="N", help="Further attempts before the first byte of an answer (2)."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@cli.command(epilog=EXIT_STATUS)
@click.argument("prompt", nargs=-1, type=click.UNPROCESSED)
@server_options
@click.option("--no-history", is_flag=True, help="Neither read nor write any history.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end instead of streamed text.")
@click.option("--dry-run", is_flag=True, help="Print the request body as JSON; send and write nothing.")
@click.pass_obj
def ask(
    home: str | None, /, prompt: tuple[str, ...], no_history: bool, as_json: bool, dry_run: bool, **flags: object
) -> None:
    """Ask one question and print the answer.

    The words of PROMPT are joined by spaces. `-` stands for standard input; without any word standard input is the
    question, and with words and no `-` it is not touched.
    """
    from mino.commands import ask as command
    from mino.home import find_home, find_usable_home
    from mino.settings import settle

    place = find_usable_home(home, os.environ) if no_history else find_home(home, os.environ)
    settings = settle(flags, os.environ, place)
    if dry_run:
        command.dry_run(place, settings, prompt, os.environ, history=not no_history)
    else:
        command.ask(place, settings, prompt, os.environ, history=not no_history, as_json=as_json)


@cli.command(epilog=EXIT_STATUS)
@server_options
@click.pass_obj
def chat(home: str | None, /, **flags: object) -> None:
    """Talk with the model, question by question, in the conversation that `ask` goes on with too.

    On a terminal with a line editor: Enter sends, Alt+Enter begins a new line, and what is pasted is one question.
    Otherwise every line of standard input is a question. `/help` lists the commands; Ctrl+D or `/exit` leaves.
    Ctrl+C leaves too: it cancels an answer that is arriving, and the process dies by that signal.
    """
    from mino.commands.chat import chat as command
    from mino.home import find_home
    from mino.settings import settle

    place = find_home(home, os.environ)
    command(place, settle(flags, os.environ, place), os.environ)


@cli.group(epilog=EXIT_STATUS, no_args_is_help=False)
def history() -> None:
    """Show, check and repair the conversation."""


@history.command(epilog=EXIT_STATUS)
@click.option("-n", "last", type=click.IntRange(min=0), metavar="N", help="Only the last N turns.")
@click.option("--turn", metavar="TURN", help="Only this turn: its number, its id, or the beginning of its id.")
@click.option("--context", is_flag=True, help="Print the input that the next request starts with, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def show(home: str | None, /, last: int | None, turn: str | None, context: bool, as_json: bool) -> int:
    """Print the turns with their number, time and status."""
    from mino.commands.show import show as command
    from mino.home import find_home

    return command(find_home(home, os.environ), last=last, turn=turn, context=context, as_json=as_json)


@history.command(epilog=EXIT_STATUS)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.UNPROCESSED)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file.")
@click.pass_obj
def verify(home: str | None, /, files: tuple[str, ...], as_json: bool) -> int:
    """Check the session, or any files, and print every finding; `-` reads file names from standard input."""
    from mino.commands.verify import verify as command
    from mino.home import find_home

    return command(find_home(home, os.environ), files, as_json=as_json)


@history.command(epilog=EXIT_STATUS)
@click.argument("file", required=False, type=click.UNPROCESSED)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("--salvage", "with_salvage", is_flag=True, help="Of an invalid file, keep every whole turn.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@wait_option
@click.pass_obj
def recover(
    home: str | None, /, file: str | None, dry_run: bool, with_salvage: bool, as_json: bool, wait: str | None
) -> int:
    """Cut an unfinished end and close an open turn, after a copy of the whole file."""
    from mino.commands.recover import recover as command

    place, seconds = _place_and_wait(home, wait)
    return command(place, seconds, file, dry_run=dry_run, with_salvage=with_salvage, as_json=as_json)


@history.command(epilog=EXIT_STATUS)
@click.argument("turns", nargs=-1, metavar="[TURN]...", type=click.UNPROCESSED)
@click.option("--last", is_flag=True, help="Forget the last turn.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing.")
@wait_option
@click.pass_obj
def forget(home: str | None, /, turns: tuple[str, ...], last: bool, dry_run: bool, wait: str | None) -> None:
    """Remove turns for good: from the session, saved sessions and recovery copies. No copy is kept.

    TURN is the number that `show` prints, an id, or the beginning of one.
    """
    from mino.commands.forget import forget as command

    place, seconds = _place_and_wait(home, wait)
    command(place, seconds, turns, last=last, dry_run=dry_run)


@history.command(epilog=EXIT_STATUS)
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "text", "messages", "responses"]),
    default="markdown",
    show_default=True,
    help="`messages` is a JSON array of role and content, `responses` one of input items.",
)
@click.option("--turn", metavar="TURN", help="Only this turn: its number, its id, or the beginning of its id.")
@click.option("-n", "last", type=click.IntRange(min=0), metavar="N", help="Only the last N completed turns.")
@click.pass_obj
def export(home: str | None, /, form: Any, turn: str | None, last: int | None) -> None:
    """Print the completed turns for readers or for other programs; what is left out is told on stderr."""
    from mino.commands.export import export as command
    from mino.home import find_home

    command(find_home(home, os.environ), form=form, turn=turn, last=last)


@cli.group(epilog=EXIT_STATUS, no_args_is_help=False)
def session() -> None:
    """Save, load and list conversations.

    NAME is any text of at most 200 bytes without `/`, control characters, or a leading `.` or `-`.
    """


@session.command(epilog=EXIT_STATUS)
@wait_option
@click.pass_obj
def new(home: str | None, /, wait: str | None) -> None:
    """Start an empty conversation; the one before is saved."""
    from mino.commands.session import new as command

    command(*_place_and_wait(home, wait))


@session.command(epilog=EXIT_STATUS)
@click.argument("name", type=click.UNPROCESSED)
@wait_option
@click.pass_obj
def save(home: str | None, /, name: str, wait: str | None) -> None:
    """Save the conversation under NAME, as a checkpoint; an older one of that name is kept."""
    from mino.commands.session import save as command

    command(*_place_and_wait(home, wait), name)


@session.command(epilog=EXIT_STATUS)
@click.argument("name", type=click.UNPROCESSED)
@wait_option
@click.pass_obj
def load(home: str | None, /, name: str, wait: str | None) -> None:
    """Go back to the saved session NAME; the conversation that it replaces is saved."""
    from mino.commands.session import load as command

    command(*_place_and_wait(home, wait), name)


@session.command("open", epilog=EXIT_STATUS)
@click.argument("name", type=click.UNPROCESSED)
@wait_option
@click.pass_obj
def open_session(home: str | None, /, name: str, wait: str | None) -> None:
    """Go on with the saved session NAME, or start it; it is saved back when another one takes its place."""
    from mino.commands.session import go_on

    go_on(*_place_and_wait(home, wait), name)


@session.command("list", epilog=EXIT_STATUS)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def list_sessions(home: str | None, /, as_json: bool) -> None:
    """List the live conversation (`*`) and the saved ones, newest first: time, turns, name, first question."""
    from mino.commands.session import list_ as command
    from mino.home import find_home

    command(find_home(home, os.environ), as_json=as_json)


@session.command(epilog=EXIT_STATUS)
@click.argument("name", type=click.UNPROCESSED)
@wait_option
@click.pass_obj
def delete(home: str | None, /, name: str, wait: str | None) -> None:
    """Delete the saved session NAME; the live conversation stays."""
    from mino.commands.session import delete as command

    command(*_place_and_wait(home, wait), name)


@session.command("import", epilog=EXIT_STATUS)
@click.argument("name", type=click.UNPROCESSED)
@click.argument("file", type=click.UNPROCESSED)
@click.option(
    "--from",
    "kind",
    type=click.Choice(["eino", "json", "messages"]),
    required=True,
    help="`eino`: JSON Lines after a header. `json`: an object with savedAt, turnCount, history. "
    "`messages`: role and content, a JSON array or one a line.",
)
@wait_option
@click.pass_obj
def import_session(home: str | None, /, name: str, file: str, kind: Any, wait: str | None) -> None:
    """Make the saved session NAME of the messages in FILE.

    A question and its answer make a turn. What makes none (a system or tool message, a question without an answer) is
    told on stderr and left out; that is status 0 if at least one turn came in, else 65.
    """
    from mino.commands.session import import_ as command

    command(*_place_and_wait(home, wait), name, file, kind)


def _place_and_wait(home: str | None, wait: str | None) -> "tuple[Home, float]":
    from mino.home import find_home
    from mino.settings import settle

    place = find_home(home, os.environ)
    return place, settle({"wait": wait}, os.environ, place).wait


def main() -> NoReturn:
    """Run the command line, and end the process with its exit status, or by the signal that ended the work.

    The interpreter is not taken down: that would be a sixth of the time of a short command, nothing waits for it, and
    the embedded engine's threads can crash in it.
    """
    status = run()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # a closed one has nothing to lose
            stream.flush()
    os._exit(status)


def run() -> int:
    """Run the command line; its exit status. Ends the process where a signal ended the work."""
    _occupy_standard_descriptors()
    try:
        status = _run()
        signals.let_go()  # an exception while the process ends would be a traceback
    except ReaderGone:
        signals.die(signal.SIGPIPE)
    except Interrupted as interrupted:
        signals.die(interrupted.signum)
    return status


def _run() -> int:
    try:
        status = cli.main(prog_name="mino", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except MinoError as failure:
        terminal.tell(failure)
        if not isinstance(failure, StorageFailed):  # which outranks a signal that waited while the turn was ended
            signals.raise_pending()
        return failure.status
    except click.UsageError as mistake:
        message = mistake.format_message().rstrip(".")
        terminal.notice(message[:1].lower() + message[1:])
        terminal.hint(f"{mistake.ctx.command_path if mistake.ctx else 'mino'} --help")
        return 2
    except ReaderGone:
        raise
    except SystemExit as end:  # click's own: after a shell completion, or 1 for a pipe that closed under a help text
        if not end.code:
            return 0
        raise ReaderGone from None
    except OSError as error:  # of a help text too: what Mino itself reads and writes has its own sentences
        sys.stdout = io.StringIO()  # or the rest of the text would be written again, and fail again, at exit
        terminal.notice(f"reading or writing failed: {error.strerror or error}")
        return StorageFailed.status
    except Exception:
        import traceback

        terminal.notice("a defect in Mino; please report it with these lines")
        traceback.print_exc()
        return 70


def _occupy_standard_descriptors() -> None:
    """Open what was closed (`>&-`): the session file would get stdout's number, and the answer be written into it."""
    for fd in (0, terminal.STDOUT, terminal.STDERR):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # the lowest free number is `fd`; writing to it fails, as it should
