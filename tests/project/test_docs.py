"""The man pages say what the program has: both are compared, in both directions."""

import re
from pathlib import Path

import click
import pytest

from mino.cli import cli
from mino.commands import slash
from mino.home import Home
from mino.journal.findings import CODES, INVALID, NOTICES, RECOVERABLE
from mino.settings import DEFAULT_BASE_URL, DEFAULT_MODEL, Settings, settle
from mino.values import FILE_ONLY, OF_SERVICE, OPTIONS
from tests.project import pages
from tests.project.interface import COMMANDS, options_in, options_of, statuses, variables
from tests.project.pages import MANUAL, ROOT, TEXTS, Page, by_name

PAGES = pages.pages()
COMMAND_PAGES = [each for each in PAGES if each.name.startswith("mino-") and each.number == "1"]
SETTINGS = [name.replace("-", "_") for name in OPTIONS | FILE_ONLY]

# Read by the libraries and by the system on Mino's behalf; no string of Mino's own names them.
FOREIGN_VARIABLES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "HOME", "TERM", "TZ"}
# It is what a shell runs, and mino(1) says all of it.
WITHOUT_PAGE = "completion"


def test_every_command_has_a_page_and_every_page_a_command() -> None:
    assert {f"mino-{name}" for name in cli.commands if name != WITHOUT_PAGE} == {each.name for each in COMMAND_PAGES}
    listed = {tag.split(",")[0] for tag in pages.page("mino").tags("COMMANDS")}
    assert listed == {f"mino {name}" for name in cli.commands}


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=by_name)
def test_synopsis_names_the_commands_and_their_options(page: Page) -> None:
    group = page.name.replace("-", " ")
    expected = {path: command for path, command in COMMANDS.items() if f"{path} ".startswith(f"{group} ")}
    found = synopses(page)
    assert found.keys() == expected.keys()
    for path, command in expected.items():
        first_names = {
            option.opts[0] for option in command.params if isinstance(option, click.Option) and not option.hidden
        }
        assert options_in(found[path]) == first_names, path


def synopses(page: Page) -> dict[str, str]:
    """What SYNOPSIS says of each command."""
    found: dict[str, str] = {}
    command = ""
    for line in page.text("SYNOPSIS").splitlines():
        match = re.match(r"(mino \w+(?: [a-z]+)?)", line)
        command = match[1] if match else command
        if command:
            found[command] = found.get(command, "") + line
    return found


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=by_name)
def test_options_are_described_with_their_command(page: Page) -> None:
    command = cli.commands[page.name.removeprefix("mino-")]
    if not isinstance(command, click.Group):
        assert options_in(" ".join(page.tags("OPTIONS"))) == options_of(command)
        return
    expected = {name: options_of(inner) for name, inner in command.commands.items()}
    described: dict[str, set[str]] = {name: set() for name in expected}
    for section in page.sections:
        if section.startswith("OPTIONS/"):
            for name in section.removeprefix("OPTIONS/").split(", "):  # a subsection may be of several commands
                described[name] |= options_in(" ".join(page.tags(section)))
    assert described == expected
    assert page.tags("COMMANDS") == list(expected)


def test_global_options() -> None:
    assert options_in(" ".join(pages.page("mino").tags("OPTIONS"))) == options_of(cli) | {"-h", "--help"}


def test_commands_of_the_chat() -> None:
    described = pages.page("mino-chat").tags("CHAT COMMANDS")
    assert described == [slash.usage(name) for name in slash.COMMANDS]


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_no_page_names_an_option_that_no_command_has(page: Page) -> None:
    known = set().union(*(options_of(command) for command in [cli, *COMMANDS.values()])) | {"--help"}
    prose = "\n".join(page.text(section) for section in page.sections if section != "EXAMPLES")
    prose = re.sub(r"pip install .*", "", prose)  # another program's
    assert {option for option in options_in(prose) if option.startswith("--")} <= known


def test_exit_statuses() -> None:
    tags = [int(tag) for tag in pages.page("mino").tags("EXIT STATUS")]
    assert set(tags) == statuses()
    assert tags == sorted(tags)


def test_exit_statuses_of_the_readme() -> None:
    rows = re.findall(r"^\|[^\n]*\|$", (ROOT / "README.md").read_text(), re.M)
    numbers = [int(cell) for row in rows for cell in row.split("|") if cell.strip().isdecimal()]
    assert sorted(numbers) == sorted(statuses())


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_page_has_exit_status(page: Page) -> None:
    tags = [int(tag) for tag in page.tags("EXIT STATUS")]
    assert set(tags) <= statuses()
    assert tags == sorted(tags)
    assert page.text("EXIT STATUS").strip()


def test_finding_codes() -> None:
    record = pages.page("mino-record")
    assert tuple(record.tags("FINDINGS")) == CODES
    assert tuple(record.tags("FINDINGS/Recoverable")) == RECOVERABLE
    assert tuple(record.tags("FINDINGS/Invalid")) == INVALID
    assert tuple(record.tags("FINDINGS/Notice")) == NOTICES
    # The table that says which rule is checked where has each of them, too.
    rules = "\n".join(record.sections["RULES"]).replace("\\-", "-")
    assert set(re.findall(r"^.*\t.*\t(\S+)$", rules, re.M)) == {"\\fBcode\\fR", *CODES}


def test_environment_variables() -> None:
    tags = {name for tag in pages.page("mino").tags("ENVIRONMENT") for name in tag.split(", ")}
    assert tags == variables() | FOREIGN_VARIABLES


@pytest.mark.parametrize("path", [*MANUAL, *TEXTS], ids=lambda path: str(path.name))
def test_no_text_names_a_variable_that_the_program_does_not_read(path: Path) -> None:
    assert set(re.findall(r"\b(?:MINO|OPENAI)_[A-Z][A-Z_]+\b", path.read_text())) <= variables()


def test_settings_and_their_defaults() -> None:
    described = pages.page("mino").paragraphs("CONFIGURATION")
    assert list(described) == SETTINGS
    defaults = {name: str(default).lower() for name, default in Settings._field_defaults.items() if name in SETTINGS}
    defaults |= {"model": DEFAULT_MODEL, "base_url": DEFAULT_BASE_URL, "context": "all"}
    defaults |= {"instructions": "SOUL.md in the home"}
    found = {name: re.findall(r"Default: (\S+(?: \S+)*?)\.(?: |$)", text)[-1] for name, text in described.items()}
    assert found == defaults


def test_example_of_config_toml_has_every_setting(tmp_path: Path) -> None:
    ((comment, example),) = pages.page("mino").blocks("CONFIGURATION/Example")
    assert comment == "file: config.toml"
    (tmp_path / "config.toml").write_text(example)
    settings = settle({}, {}, Home(str(tmp_path), is_default=False))
    assert settings.api_key_command == ["pass", "show", "openai"]
    # Two of them exclude each other, and the key of a service would go before this one.
    own, _, service = example.partition("[services")
    assert re.findall(r"^(?:# )?(\w+) =", own, re.M) == SETTINGS
    assert set(re.findall(r"^(\w+) =", service, re.M)) <= set(OF_SERVICE)


@pytest.mark.parametrize("name", ["mino-ask", "mino-chat"])
def test_options_have_the_variables_and_defaults_of_the_settings(name: str) -> None:
    described = pages.page(name).paragraphs("OPTIONS")
    for option in OPTIONS:
        text = next(text for tag, text in described.items() if f"--{option}" in re.split("[ ,]+", tag))
        named = set(re.findall(r"(?:MINO|OPENAI)_[A-Z_]+", text)) - {"MINO_LOCAL_MODEL"}
        assert named == set(OPTIONS[option].variables(option))
        for default in re.findall(r"Default: (\w+)\.", text):
            known = getattr(Settings(), option.replace("-", "_"))
            assert OPTIONS[option].read(default) == known


def test_schemas() -> None:
    published = {path.name for path in (ROOT / "schemas").iterdir()}
    text = "\n".join(page.text(section) for page in PAGES for section in page.sections)
    assert set(re.findall(r"schemas/([\w.]+\.json)", text)) == published
