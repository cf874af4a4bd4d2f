"""What the program has: commands, options, exit statuses, environment variables; read out of the program itself."""

import ast
import re
from collections.abc import Iterator

import click

from mino import errors
from mino.cli import cli
from mino.settings import KEY_VARIABLE
from mino.values import OPTIONS
from tests.project.pages import ROOT

SOURCES = sorted((ROOT / "mino").rglob("*.py"))


def _commands(command: click.Command = cli, path: str = "mino") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from _commands(inner, f"{path} {name}")


# Every command that does something, by what a user types.
COMMANDS = dict(_commands())


def options_of(command: click.Command) -> set[str]:
    """All names of the options of `command`, but for those that its help leaves out, and --help, which all have."""
    parameters = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    return {name for option in parameters for name in (*option.opts, *option.secondary_opts)}


def options_in(text: str) -> set[str]:
    """Whatever in `text` looks like an option."""
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text))


def statuses() -> set[int]:
    """Every exit status: of the failures that Mino foresees, of those it does not, and of what is none."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "status")]
    return {0, 1, 70} | {kind.status for kind in kinds}


def variables() -> set[str]:
    """Every string in the sources that is the name of an environment variable, and those that the options make."""
    named = {name for option in OPTIONS for name in OPTIONS[option].variables(option)} | {KEY_VARIABLE}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.update(re.findall(r"^(?:(?:MINO|OPENAI)_[A-Z_]+|[A-Z_]+_CA_BUNDLE|PAGER|NO_COLOR)$", node.value))
    return named


def check_command(arguments: list[str]) -> None:
    """Read the `arguments` of a `mino` as the program does, but run nothing. Raises click.UsageError."""
    command: click.Command = cli
    context = click.Context(cli, info_name="mino", **cli.context_settings)  # click keeps what it says of --help
    while isinstance(command, click.Group):
        options, arguments, _ = command.make_parser(context).parse_args(list(arguments))
        if options.keys() & {"version", "help"}:
            return
        name, found, arguments = command.resolve_command(context, arguments)
        assert found
        command, context = found, click.Context(found, info_name=name, parent=context)
    if "--help" not in arguments:
        command.make_context(context.info_name, list(arguments), parent=context.parent)
