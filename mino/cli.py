"""The command line: every command, option and help sentence, and the exit statuses that are not failures.

`mino.commands` does the work; it is imported when a command runs, so that `mino --version` does not pay for a turn.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mino import __version__
from mino.errors import MinoError, UsageMistake
from mino.usage import Call, Root, usage_hint

Function = TypeVar("Function", bound=Callable[..., Any])

# `verify` exits with the status of the state; if there are several files, the worst status counts, in this order.
STATE_STATUS = {"clean": 0, "in-use": 0, "recoverable": 1, "invalid": 65}
WORST_FIRST = (65, 66, 77, 74, 1, 0)


def run() -> int:
    """Run the command in `sys.argv`; its exit status. Raises UsageMistake for a wrong command line."""
    try:
        status = cli.main(prog_name="mino", standalone_mode=False)
    except click.UsageError as mistake:
        message = mistake.message.rstrip(".")
        raise UsageMistake(message[:1].lower() + message[1:], usage_hint(mistake)) from None
    return status if isinstance(status, int) else 0


@click.command(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    page="mino(1)",
    examples=('mino ask "What is the capital of France?"', "mino chat"),
)
@click.version_option(__version__, prog_name="mino", message="%(prog)s %(version)s")
def cli() -> None:
    """Ask language models from a shell, and keep the conversation."""


expanded = os.path.expanduser  # a path may begin with `~`, wherever it comes from

# Commands that take a lock have it.
wait_option = click.option("--wait", metavar="SECONDS", help="How long to wait for a conversation in use (0).")


_SERVER_OPTIONS = (
    click.option("-m", "--model", metavar="NAME", help="The model to ask."),
    click.option("--base-url", metavar="URL", help="The server, used as given, /v1 included."),
    click.option("--service", metavar="NAME", help="A service of config.toml."),
    click.option("--local/--no-local", default=None, help="Use the embedded engine; no key is sent."),
)
_PATIENCE_OPTIONS = (
    click.option("--timeout", metavar="SECONDS", help="How long the service may send nothing (300)."),
    click.option("--retries", metavar="N", help="Further attempts before any output (2)."),
)


def service_options(command: Function) -> Function:
    """The options of a command that looks at a service."""
    for option in reversed((*_SERVER_OPTIONS, _PATIENCE_OPTIONS[0])):
        command = option(command)
    return command


def server_options(command: Function) -> Function:
    """The options of a command that asks a model; their values are read in `mino.settings`, wherever they come from."""
    for option in reversed((*_SERVER_OPTIONS, wait_option, *_PATIENCE_OPTIONS)):
        command = option(command)
    return command


_QUESTION_OPTIONS = (
    click.option("--context", metavar="all|none|N|SIZE", help="How many completed turns to send (all)."),
    click.option("-s", "--system", metavar="TEXT", help="Instructions for the model, not SOUL.md."),
    click.option("--instructions", metavar="FILE", help="The same, from a file."),
    click.option("--stream/--no-stream", default=None, help="Print as the answer arrives, or at its end."),
    click.option("--usage/--no-usage", default=None, help="Report the tokens and the time."),
)


def question_options(command: Function) -> Function:
    """The options of a command that sends a person's question."""
    for option in reversed(_QUESTION_OPTIONS):
        command = option(command)
    return command


@cli.command(
    page="mino-ask(1)",
    examples=('mino ask "What is the capital of France?"', 'mino ask "What does this do?" - < main.c'),
)
@click.argument("prompt", nargs=-1, type=click.UNPROCESSED)
@server_options
@question_options
@click.option("-a", "--attach", multiple=True, metavar="FILE", type=expanded, help="Send a picture, PDF or text.")
@click.option("-o", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Set a field of the request.")
@click.option("--schema", metavar="FILE", type=expanded, help="The answer must be JSON that fits this schema.")
@click.option("-x", "--extract", is_flag=True, help="Print only the first fenced code block.")
@click.option("--no-history", is_flag=True, help="Neither read nor write any history.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
@click.option("--dry-run", is_flag=True, help="Print the request as JSON, and send nothing.")
@click.pass_obj
def ask(
    call: Call,
    /,
    prompt: tuple[str, ...],
    options: tuple[str, ...],
    attach: tuple[str, ...],
    schema: str | None,
    extract: bool,
    no_history: bool,
    as_json: bool,
    dry_run: bool,
    **flags: object,
) -> None:
    """Ask one question and print the answer."""
    from mino.commands import ask as command
    from mino.home import find_usable_home
    from mino.settings import settle

    if no_history and call.session is not None:
        raise UsageMistake("--session names a conversation, and --no-history uses none: give one of them")
    place = find_usable_home(call.home, os.environ) if no_history else call.find_home()
    settings, session = settle(flags, os.environ, place), call.choose_session()
    asked = command.Asked(prompt, options, attach, schema, extract, as_json, history=not no_history)
    if dry_run:
        command.dry_run(place, session, settings, asked)
    else:
        command.ask(place, session, settings, asked, os.environ)


@cli.command(page="mino-chat(1)", examples=("mino chat", "mino chat --local --context 10"))
@server_options
@question_options
@click.pass_obj
def chat(call: Call, /, **flags: object) -> int:
    """Talk with the model, question by question."""
    from mino.commands.chat import chat as command
    from mino.settings import settle

    place = call.find_home()
    failure = command(place, call.choose_session(), settle(flags, os.environ, place), os.environ)
    return failure.status if failure else 0


@cli.group(
    page="mino-history(1)",
    examples=("mino history show -n 2", "mino history verify"),
)
def history() -> None:
    """Show, search, check, repair, export and shorten the conversation."""


turn_option = click.option("--turn", metavar="TURN", help="Only this turn: its number or id.")


file_argument = click.argument("file", required=False, type=expanded)


@history.command(page="mino-history(1)", examples=("mino history show -n 2", "mino history show --turn 3 --json"))
@file_argument
@click.option("-n", "last", type=click.IntRange(min=0), metavar="N", help="Only the last N turns.")
@turn_option
@click.option("--context", is_flag=True, help="Print the input that the next request starts with.")
@click.option("--salvage", "with_salvage", is_flag=True, help="Print what recover --salvage would keep.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def show(call: Call, /, file: str | None, context: bool, as_json: bool, **options: Any) -> None:
    """Print the turns with their number, time and status."""
    from mino.commands import show as command

    place, session = call.find_home(), call.choose_session(file)
    if context:
        from mino.settings import settle

        command.show_context(place, session, file, settle({}, os.environ, place), **options)
    else:
        command.show(place, session, file, as_json=as_json, **options)


@history.command(page="mino-history(1)", examples=("mino history search -i paris", 'mino history search --all "巴黎"'))
@click.argument("pattern", type=click.UNPROCESSED)
@click.option("-i", "ignore_case", is_flag=True, help="Upper and lower case are equal.")
@click.option("-E", "is_expression", is_flag=True, help="PATTERN is a regular expression.")
@click.option("--all", "every", is_flag=True, help="Search every conversation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def search(call: Call, /, pattern: str, ignore_case: bool, is_expression: bool, every: bool, as_json: bool) -> None:
    """Print the lines of questions and answers that have PATTERN."""
    from mino.commands.search import search as command

    command(
        call.find_home(),
        call.choose_session(),
        pattern,
        every=every,
        ignore_case=ignore_case,
        is_expression=is_expression,
        as_json=as_json,
    )


@history.command(
    page="mino-history(1)",
    examples=("mino history verify", "find backup -name '*.jsonl' -print0 | mino history verify -"),
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=expanded)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file.")
@click.option("-q", "quiet", is_flag=True, help="Print only findings, and files that are not clean.")
@click.pass_obj
def verify(call: Call, /, files: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Check the conversation, or any files, and print every finding."""
    from mino.commands.verify import verify as command

    outcomes = command(call.find_home(), call.choose_session(files), files, as_json=as_json, quiet=quiet)
    statuses = (each.status if isinstance(each, MinoError) else STATE_STATUS[each] for each in outcomes)
    return min(statuses, key=WORST_FIRST.index, default=0)


@history.command(
    page="mino-history(1)", examples=("mino history recover --dry-run", "mino history recover --salvage FILE")
)
@file_argument
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("--salvage", "with_salvage", is_flag=True, help="Keep every whole turn of an invalid file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@wait_option
@click.pass_obj
def recover(call: Call, /, file: str | None, dry_run: bool, with_salvage: bool, as_json: bool, wait: str | None) -> int:
    """Cut an unfinished end and close an open turn."""
    from mino.commands.recover import recover as command

    place, seconds = call.find_home_and_wait(wait)
    session = call.choose_session(file)
    would_change = command(place, session, seconds, file, dry_run=dry_run, with_salvage=with_salvage, as_json=as_json)
    return 1 if would_change else 0


@history.command(page="mino-history(1)", examples=("mino history forget 3 4", "mino history forget --last --dry-run"))
@click.argument("turns", nargs=-1, metavar="[TURN]...", type=click.UNPROCESSED)
@click.option("--last", is_flag=True, help="Forget the last turn.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing.")
@wait_option
@click.pass_obj
def forget(call: Call, /, turns: tuple[str, ...], last: bool, dry_run: bool, wait: str | None) -> None:
    """Remove turns for good, from every conversation and recovery copy."""
    from mino.commands.forget import forget as command

    place, seconds = call.find_home_and_wait(wait)
    command(place, call.choose_session(), seconds, turns, last=last, dry_run=dry_run)


@history.command(
    page="mino-history(1)",
    examples=("mino history export > conversation.md", "mino history export --format messages -n 1"),
)
@file_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "text", "messages", "responses"]),
    default="markdown",
    help="The form of the output (markdown).",
)
@turn_option
@click.option("-n", "last", type=click.IntRange(min=0), metavar="N", help="Only the last N completed turns.")
@click.pass_obj
def export(call: Call, /, file: str | None, form: Any, turn: str | None, last: int | None) -> None:
    """Print the completed turns for readers or for other programs."""
    from mino.commands.export import export as command

    command(call.find_home(), call.choose_session(file), file, form=form, turn=turn, last=last)


@history.command(page="mino-history(1)", examples=("mino history compact", "mino history compact --keep 10 --local"))
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Leave the last N completed turns (4).")
@server_options
@click.pass_obj
def compact(call: Call, /, keep: int | None, **flags: object) -> None:
    """Replace the earlier turns by a summary; all is saved first."""
    from mino.commands.compact import compact as command
    from mino.settings import settle

    place = call.find_home()
    command(place, call.choose_session(), settle(flags, os.environ, place), os.environ, keep)


@cli.group(
    page="mino-session(1)",
    examples=('mino session save "before the details"', "mino session list"),
)
def session() -> None:
    """Keep conversations by name."""


name_argument = click.argument("name", type=click.UNPROCESSED)


@session.command("list", page="mino-session(1)", examples=("mino session list", "mino session list --json"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def list_sessions(call: Call, /, as_json: bool) -> None:
    """List the conversations, newest first."""
    from mino.commands.session import list_ as command

    command(call.find_home(), as_json=as_json)


@session.command(page="mino-session(1)", examples=("mino session new", "mino session new --wait 10"))
@wait_option
@click.pass_obj
def new(call: Call, /, wait: str | None) -> None:
    """Empty the unnamed conversation; what it held is saved."""
    from mino.commands.session import new as command

    command(*call.find_home_and_wait(wait))


@session.command("open", page="mino-session(1)", examples=("mino session open garden", "mino session open"))
@click.argument("name", required=False, type=click.UNPROCESSED)
@wait_option
@click.pass_obj
def open_session(call: Call, /, name: str | None, wait: str | None) -> None:
    """Make NAME (without it: the unnamed conversation) current."""
    from mino.commands.session import open_ as command

    command(*call.find_home_and_wait(wait), name)


@session.command(page="mino-session(1)", examples=("mino session save draft", 'mino session save "第一稿"'))
@name_argument
@wait_option
@click.pass_obj
def save(call: Call, /, name: str, wait: str | None) -> None:
    """Copy the current conversation to NAME."""
    from mino.commands.session import save as command

    command(*call.find_home_and_wait(wait), name)


@session.command(page="mino-session(1)", examples=("mino session load draft", "mino session load draft --wait 10"))
@name_argument
@wait_option
@click.pass_obj
def load(call: Call, /, name: str, wait: str | None) -> None:
    """Make the unnamed conversation a copy of NAME."""
    from mino.commands.session import load as command

    command(*call.find_home_and_wait(wait), name)


@session.command(page="mino-session(1)", examples=("mino session rename draft final", 'mino session rename a "第一稿"'))
@click.argument("old", type=click.UNPROCESSED)
@click.argument("new", type=click.UNPROCESSED)
@wait_option
@click.pass_obj
def rename(call: Call, /, old: str, new: str, wait: str | None) -> None:
    """Give the conversation OLD the name NEW."""
    from mino.commands.session import rename as command

    command(*call.find_home_and_wait(wait), old, new)


@session.command(page="mino-session(1)", examples=("mino session delete draft", "mino session delete draft --wait 10"))
@name_argument
@wait_option
@click.pass_obj
def delete(call: Call, /, name: str, wait: str | None) -> None:
    """Delete the conversation NAME."""
    from mino.commands.session import delete as command

    command(*call.find_home_and_wait(wait), name)


@session.command(page="mino-session(1)", examples=("mino session clean --dry-run", "mino session clean --older 7"))
@click.option("--older", type=click.FloatRange(min=0), default=30, metavar="DAYS", help="Only older copies (30).")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing.")
@click.pass_obj
def clean(call: Call, /, older: float, dry_run: bool) -> None:
    """Remove automatic copies and recovery copies."""
    from mino.commands.session import clean as command

    command(call.find_home(), older, dry_run=dry_run)


@session.command(
    "import",
    page="mino-session(1)",
    examples=("mino session import old messages.json --from messages", "mino session open old"),
)
@name_argument
@click.argument("file", type=expanded)
@click.option(
    "--from",
    "kind",
    type=click.Choice(["eino", "json", "messages"]),
    required=True,
    help="The kind of file.",
)
@wait_option
@click.pass_obj
def import_session(call: Call, /, name: str, file: str, kind: Any, wait: str | None) -> None:
    """Make NAME from the messages in FILE."""
    from mino.commands.session import import_ as command

    command(*call.find_home_and_wait(wait), name, file, kind)


@cli.group(page="mino-config(1)", examples=("mino config show", "mino config check --service ollama"))
def config() -> None:
    """Show the settings, and check the service."""


@config.command("show", page="mino-config(1)", examples=("mino config show", "mino config show --service ollama"))
@service_options
@click.pass_obj
def show_config(call: Call, /, **flags: object) -> None:
    """Print each setting in force, and where it comes from."""
    from mino.commands.config import show as command
    from mino.settings import settle

    place = call.find_home()
    command(place, settle(flags, os.environ, place), os.environ)


@config.command("check", page="mino-config(1)", examples=("mino config check", "mino config check --local"))
@service_options
@click.pass_obj
def check_config(call: Call, /, **flags: object) -> None:
    """Ask the service for the smallest answer, and say what works."""
    from mino.commands.config import check as command
    from mino.settings import settle

    command(settle(flags, os.environ, call.find_home()), os.environ)


@config.command("models", page="mino-config(1)", examples=("mino config models", "mino config models --service ollama"))
@service_options
@click.pass_obj
def list_models(call: Call, /, **flags: object) -> None:
    """Print the models of the service, one a line."""
    from mino.commands.config import models as command
    from mino.settings import settle

    command(settle(flags, os.environ, call.find_home()), os.environ)


@cli.command(page="mino(1)", examples=("source <(mino completion bash)", "mino completion fish | source"))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.argument("words", nargs=-1, metavar="[WORD]...", type=click.UNPROCESSED)
@click.pass_context
def completion(context: click.Context, /, shell: str, words: tuple[str, ...]) -> None:
    """Print the script that completes the words of mino in a shell."""
    from mino.commands.completion import completion as command

    command(cli.to_info_dict(context.find_root()), shell, words, os.environ)
