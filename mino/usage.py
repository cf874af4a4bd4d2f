"""How the commands of `mino.cli` print their help, and take the options that stand anywhere on a command line."""

import os
from typing import TYPE_CHECKING, Any

import click

from mino.errors import UsageMistake
from mino.terminal import output

if TYPE_CHECKING:
    from mino.home import Home


def usage_hint(mistake: click.UsageError) -> str:
    """The option that was probably meant, if one is near; else how to see what there is."""
    from difflib import SequenceMatcher

    wrong = getattr(mistake, "option_name", "")
    for right in getattr(mistake, "possibilities", None) or ():
        alike = SequenceMatcher(None, wrong, right).ratio()
        # `--retry` is near `--retries`; `--session` is not near `--version`, though nearly as many letters are equal.
        if alike >= 0.7 and wrong.lstrip("-")[:1] == right.lstrip("-")[:1]:
            return f"did you mean {right}?"
    return f"{mistake.ctx.command_path if mistake.ctx else 'mino'} --help"


class Call:
    """What the command line says of where to work: the options that stand before or after a command's name."""

    def __init__(self) -> None:
        self.home: str | None = None
        self.session: str | None = None

    def find_home(self) -> "Home":
        """The home that is meant. Raises as `find_home`."""
        from mino.home import find_home

        return find_home(self.home, os.environ)

    def find_home_and_wait(self, wait: str | None) -> "tuple[Home, float]":
        """As `find_home`, with the seconds to wait for a lock."""
        from mino.settings import settle

        place = self.find_home()
        return place, settle({"wait": wait}, os.environ, place).wait

    def choose_session(self, file: object = None) -> str | None:
        """The name of the conversation that is meant, None for the current one.

        Raises UsageMistake beside a `file`, and for what cannot be a name.
        """
        if self.session is not None and file:
            raise UsageMistake("--session names a conversation, and so does FILE: give one of them")
        from mino.sessions import saved

        name = os.environ.get("MINO_SESSION") or None if self.session is None else self.session
        if name is not None:
            saved.path_of("", name)  # before a key is looked for, or a model loaded
        return name


def _note(context: click.Context, option: click.Parameter, value: str | None) -> None:
    call = context.ensure_object(Call)
    if value is not None:
        setattr(call, option.name or "", value)
    output.name_call(call.home, call.session)


_SESSION_HELP = "The conversation (MINO_SESSION, else the current one)."
_WITH_SESSION = ("mino-ask(1)", "mino-chat(1)", "mino-history(1)")  # the pages of the commands that take --session


class Command(click.Command):
    """A command whose help is the sentence, two examples, the options, and the page that has the rest."""

    is_root = False

    def __init__(self, *args: Any, examples: tuple[str, str], page: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = examples
        self.page = page
        # The help shows them where they are most useful; they can stand after any command.
        if self.is_root or page in _WITH_SESSION:
            self._add("--session", "NAME", _SESSION_HELP, hidden=page == "mino-history(1)")
        self._add("--home", "DIR", "The home directory of Mino (MINO_HOME, else ~/.mino).", hidden=not self.is_root)

    def _add(self, name: str, metavar: str, purpose: str, *, hidden: bool) -> None:
        option = click.Option([name], metavar=metavar, help=purpose, hidden=hidden, expose_value=False, callback=_note)
        self.params.insert(0, option)

    def invoke(self, context: click.Context) -> Any:
        call = context.ensure_object(Call)
        if call.session is not None and not isinstance(self, click.Group) and self.page not in _WITH_SESSION:
            raise click.UsageError("--session goes with ask, chat and history", context)
        return super().invoke(context)

    def format_help_text(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(self.help or "")
        formatter.write_paragraph()
        for example in self.examples:
            formatter.write(f"  {example}\n")

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(f"See {self.page}.")


class Group(Command, click.Group):
    """A group of commands; without one it prints its help, which lists them, each with its whole sentence."""

    command_class = Command

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, invoke_without_command=True, **more)

    def invoke(self, context: click.Context) -> Any:
        result = super().invoke(context)
        if context.invoked_subcommand is None:
            click.echo(context.get_help())
        return result

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, (command.help or "").rstrip(".")) for name, command in self.commands.items()])

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(context, formatter)
        click.Command.format_options(self, context, formatter)


class Root(Group):
    """`mino` itself, whose help shows the options that every command takes."""

    is_root = True
    group_class = Group
