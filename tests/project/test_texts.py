"""The man pages are well made, and what they and the README name is there: pages, files, commands, options."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from mino import __version__
from mino.cli import cli
from tests.project import pages
from tests.project.interface import COMMANDS, SOURCES, check_command, options_in, options_of
from tests.project.pages import MANUAL, ROOT, TEXTS, Example, Page, by_name

PAGES = pages.pages()
ORDER = ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES"]
CHECKERS = {
    "man": ["man", "--warnings", "--local-file"],
    "groff": ["groff", "-ww", "-t", "-man", "-Tutf8", "-Z"],
    "mandoc": ["mandoc", "-T", "lint", "-W", "warning"],
}


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_shape_of_a_page(page: Page) -> None:
    titles = [name for name in page.sections if name and "/" not in name]
    assert [name for name in titles if name in ORDER] == [name for name in ORDER if name in titles]
    assert titles[-2:] == ["EXAMPLES", "SEE ALSO"]
    name = page.name.upper().replace("-", "\\-")
    heading = next(line for line in page.lines if line.startswith(".TH"))
    assert re.sub(r"\d{4}-\d\d-\d\d", "DATE", heading) == (
        f'.TH {name} {page.number} DATE "Mino {__version__}" "Mino Manual"'
    )


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_pages_refer_to_pages_that_are_there(page: Page) -> None:
    text = "\n".join(page.text(section) for section in page.sections)
    known = {by_name(each) for each in PAGES}
    found = {f"{name}.{number}" for name, number in re.findall(r"\b(mino(?:-\w+)?)\((\d)\)", text)}
    assert found <= known
    if page.name == "mino":
        assert found == known - {"mino.1"}


@pytest.mark.parametrize("path", MANUAL, ids=lambda path: str(path.name))
@pytest.mark.parametrize("checker", CHECKERS)
def test_pages_give_no_warning(checker: str, path: Path) -> None:
    if not shutil.which(checker):
        pytest.skip(f"{checker} is not installed")
    environ = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}
    run = subprocess.run([*CHECKERS[checker], path], capture_output=True, text=True, env=environ, check=False)
    assert run.stderr == ""
    assert bool(run.stdout) == (checker != "mandoc"), run.stdout
    assert run.returncode == 0


EXAMPLES = [example for page in PAGES for example in page.examples()] + pages.readme_examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)
def test_examples_name_real_commands_and_options(example: Example) -> None:
    for arguments in pages.mino_commands(example.script):
        check_command(arguments)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.name))
def test_texts_name_real_commands_and_options(path: Path) -> None:
    for spoken in re.findall(r"`mino ([^`…]+)[^`]*`", path.read_text()):
        command = click.Group.get_command(cli, click.Context(cli), spoken.split()[0])
        if isinstance(command, click.Group):
            assert len(spoken.split()) == 1 or spoken.split()[1] in command.commands
        known = {"-m", "-h", "--help", "--version", "--home"}.union(*map(options_of, COMMANDS.values()))
        assert command or spoken.startswith("-"), spoken
        assert options_in(spoken) <= known, spoken


def test_hints_name_real_commands_and_options() -> None:
    groups = [name for name, command in cli.commands.items() if isinstance(command, click.Group)]
    for path in SOURCES:
        for group, name, options in re.findall(r"\bmino (\w+) (\w+)((?: --[a-z-]+)*)", path.read_text()):
            if group in groups:
                assert f"mino {group} {name}" in COMMANDS, path
                assert options_in(options) <= options_of(COMMANDS[f"mino {group} {name}"]) | {"--help"}, path


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.name))
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text()
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors
        elif not target.startswith("https://"):
            assert (ROOT / target.partition("#")[0]).exists(), target


def test_tree_in_contributing_is_the_tree() -> None:
    ((_, tree),) = pages.markdown_blocks((ROOT / "CONTRIBUTING.md").read_text(), "text")
    listed = re.findall(r"^  (?:  )?(\w+/)|(\w+\.py)", tree, re.M)
    modules: list[str] = []
    folder = ""
    for name, module in listed:
        folder = name or folder
        modules += [folder + module] if module else []
    sources = [str(path.relative_to(ROOT / "mino")) for path in SOURCES if path.name != "__init__.py"]
    assert sorted(modules) == sorted(sources)


def test_changelog_begins_with_this_version() -> None:
    heading = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert heading
    assert heading[1].split()[0] == __version__


def test_readme_begins_with_two_commands_to_paste() -> None:
    first, second, *_ = (script for _, script in pages.markdown_blocks((ROOT / "README.md").read_text(), "sh"))
    assert first.count("\n") == second.count("\n") == 1
    assert first.startswith("python3 -m venv .venv && ")
    assert list(pages.mino_commands(first)) == [["ask", "--local", "What is the capital of France?"]]
    assert "/pytest " in second


def test_ci_runs_the_second_command_of_the_readme() -> None:
    _, (_, command), *_ = pages.markdown_blocks((ROOT / "README.md").read_text(), "sh")
    lines = (ROOT / ".ci" / "run").read_text().splitlines(keepends=True)
    assert lines[-2:] == ["set -x\n", command]
    assert [line for line in lines if "pytest" in line] == [command]
    assert "set -euo pipefail\n" in lines


def test_a_module_has_a_unit_test_or_contributing_says_what_covers_it() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    covered = re.findall(r"Covered by system tests alone: (.*?)\.\n\n", text, re.S)[0]
    named = set(re.findall(r"`([\w/]+)`", covered))
    without = set()
    for path in SOURCES:
        module = path.relative_to(ROOT / "mino").with_suffix("")
        tests = (ROOT / "tests" / "unit" / module.parent).glob(f"test_{module.name}*.py")
        if path.name not in ("__init__.py", "__main__.py") and not any(tests):
            without.add(module.as_posix())
    assert without == named
