"""The help texts: the sentence, two examples, the options, the page; on one screen, and nothing cut."""

import re

import click
import pytest
from click.testing import CliRunner

from mino.cli import cli
from tests.project import pages
from tests.project.interface import COMMANDS, check_command
from tests.project.test_docs import WITHOUT_PAGE

GROUPS = {"mino": cli} | {
    f"mino {name}": command for name, command in cli.commands.items() if isinstance(command, click.Group)
}
ALL = sorted({**COMMANDS, **GROUPS})
SCREEN = 24  # lines


def output_of(*words: str) -> str:
    done = CliRunner().invoke(cli, words, prog_name="mino", terminal_width=80)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("path", ALL)
def test_help_is_one_screen_in_the_order_of_what_a_person_needs(path: str) -> None:
    text = output_of(*path.split()[1:], "--help")
    assert output_of(*path.split()[1:], "-h") == text
    lines = text.splitlines()
    assert len(lines) <= SCREEN or path in ("mino ask", "mino chat")
    assert max(map(len, lines)) <= 80
    assert "..." not in text.replace("]...", "")
    usage, sentence, examples, *_, last = text.rstrip("\n").split("\n\n")
    assert usage.startswith(f"Usage: {path} ") and "\n" not in sentence and sentence.endswith(".")
    first, second = examples.splitlines()
    assert first != second
    assert "\nOptions:\n" in text
    page = re.fullmatch(r"See ((mino(?:-\w+)?)\(1\))\.", last)
    assert page and page[2] == ("mino" if path == f"mino {WITHOUT_PAGE}" else "-".join(path.split()[:2]))
    pages.page(page[2])


@pytest.mark.parametrize("path", ALL)
def test_examples_in_help_are_real_commands(path: str) -> None:
    text = output_of(*path.split()[1:], "--help")
    for example in text.split("\n\n")[2].splitlines():
        (arguments,) = pages.mino_commands(example)
        check_command(arguments)


@pytest.mark.parametrize("path", sorted(GROUPS))
def test_a_group_alone_prints_its_help(path: str) -> None:
    assert output_of(*path.split()[1:]) == output_of(*path.split()[1:], "--help")


@pytest.mark.parametrize("path", sorted(GROUPS))
def test_a_summary_is_the_whole_sentence(path: str) -> None:
    text = output_of(*path.split()[1:])
    for name, command in GROUPS[path].commands.items():
        assert command.help and command.help.endswith(".")
        assert f"\n  {name} " in text and f" {command.help.rstrip('.')}\n" in text
