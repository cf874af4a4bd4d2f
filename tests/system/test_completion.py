"""Completion in the shells that people have: Tab is pressed in each, and what then stands there is run."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import homes
from tests.system.program import ROOT, Program
from tests.system.window import Window

PROMPT = "% "
# The documented line of each shell, and a prompt that the test knows.
SHELLS = {
    "bash": (".bashrc", 'PS1="% "\nsource <(mino completion bash)\n', ["bash", "-i"]),
    "zsh": (".zshrc", 'PS1="%% "\nsource <(mino completion zsh)\n', ["zsh", "-i"]),
    "fish": (
        ".config/fish/config.fish",
        # What fish suggests in grey would look like a completion.
        'function fish_prompt; echo -n "% "; end\nset fish_greeting\nset fish_autosuggestion_enabled 0\n'
        "mino completion fish | source\n",
        ["fish", "-i"],
    ),
}
NAMES = ["北京 计划 🐕", 'it\'s "quoted" $HOME', "plan: b&c", "plan: b d", "garden"]
FILES = ["notes 1.jsonl", "文件 🐕's.jsonl", 'a "b" $c.jsonl']


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, mino: Program, tmp_path: Path) -> Iterator[Window]:
    """The shell at its first prompt, with a home of a conversation and saved ones, and files beside it."""
    startup, script, command = SHELLS[request.param]
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    program = tmp_path / "bin" / "mino"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mino "$@"\n')
    program.chmod(0o755)
    mino.write_session(homes.completed(("第一个 question", "A"), ("second", "B")))
    for name in NAMES:
        homes.save(mino.home, name, homes.completed((name, "A")))
    (tmp_path / startup).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / startup).write_text(script)
    place = tmp_path / "place"
    place.mkdir()
    for file in FILES:
        (place / file).write_bytes(homes.completed((file, "A")))
    (place / "garden").mkdir()  # a directory that is called like a session
    environ = {**mino.environ, "PATH": f"{program.parent}:{mino.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    with Window(command, environ, place, columns=150) as window:
        window.wait_for(PROMPT)
        yield window


def complete(window: Window, typed: str, line: str) -> None:
    """Type `typed` and Tab; the line must then be `line`."""
    window.press("C-u")
    window.write(typed)
    window.wait_for(typed)
    window.press("Tab")
    window.wait_for(PROMPT + line)


def complete_whole(window: Window, typed: str) -> None:
    """Type `typed` and Tab; wait until something was added."""
    window.press("C-u")
    window.write(typed)
    window.wait_for(typed)
    window.press("Tab")
    window.wait_for(lambda text: len(text.rpartition(PROMPT)[2]) > len(typed))


def run(window: Window) -> str:
    """Run the line; what it printed."""
    window.press("Enter")
    line = window.wait_for(lambda text: text.endswith("\n" + PROMPT.rstrip()))
    return line.removesuffix(PROMPT.rstrip()).rpartition(PROMPT)[2]


def test_commands_options_and_values(shell: Window) -> None:
    for typed, line in (
        ("mino hist", "mino history"),
        ("mino history ver", "mino history verify"),
        ("mino history verify --js", "mino history verify --json"),
        ("mino history export --format mark", "mino history export --format markdown"),
        ("mino history export --format=mark", "mino history export --format=markdown"),
        ("mino ask --context al", "mino ask --context all"),
        ("mino --home x session li", "mino --home x session list"),
        ("mino completion fi", "mino completion fish"),
    ):
        complete(shell, typed, line)


def test_files_are_completed_by_the_shell_itself(shell: Window) -> None:
    for typed in (
        "mino history verify ",
        "mino history verify --json ",
        "mino history verify - < ",
        "mino ask what is this ",
        "mino ask --instructions ",
        "mino ask --instructions=",
        "mino ask hello > ",
        "mino ask -- ",
        "mino session import old ",
        "mino --home ",
    ):
        complete(shell, f"{typed}no", rf"{typed}notes\ 1.jsonl")
    complete(shell, "mino ask ~/pla", "mino ask ~/place/")
    complete(shell, "mino ask $HOME/pla", "mino ask $HOME/place/")
    for typed, file in (("no", FILES[0]), ("文", FILES[1]), ("a", FILES[2]), ("'no", FILES[0]), ('"a', FILES[2])):
        complete_whole(shell, f"mino history verify {typed}")
        assert run(shell).endswith(f"{file}: clean: 3 records, 1 turn (1 completed)\n")


def test_names_of_saved_sessions(shell: Window) -> None:
    for typed, name in (
        ("北", NAMES[0]),
        ("it", NAMES[1]),
        ('"it', NAMES[1]),
        ("'北京 ", NAMES[0]),
        (r"plan:\ b\&", NAMES[2]),
        ("'plan: b ", NAMES[3]),
        ("ga", NAMES[4]),
    ):
        complete_whole(shell, f"mino session load {typed}")
        assert f"loaded '{name}': 1 turn\n" in run(shell)
    # What several begin with is inserted, and then they are listed.
    complete_whole(shell, "mino session load --wait 1 'pla")
    shell.wait_for(lambda text: "'plan: b" in text)
    shell.press("Tab", "Tab")
    shell.wait_for(lambda text: "plan: b&c" in text and "plan: b d" in text)


def test_services_and_the_models_that_they_name(shell: Window, mino: Program) -> None:
    (mino.home / "config.toml").write_text(
        "[services.ollama]\n[services.openai.models]\nfast = 'a'\nfine = 'b'\n[services.'阿里 云']\n"
    )
    complete(shell, "mino ask --service oll", "mino ask --service ollama ")
    complete(shell, "mino chat --service=ollam", "mino chat --service=ollama ")
    complete(shell, "mino config check --service opena", "mino config check --service openai ")
    complete(shell, "mino ask --service openai -m fa", "mino ask --service openai -m fast ")
    complete(shell, "mino ask -m not", "mino ask -m notes\\ 1.jsonl ")  # a file of the engine's
    complete(shell, "mino config mod", "mino config models ")


def test_turn_numbers(shell: Window) -> None:
    complete(shell, "mino history show --turn ", "mino history show --turn ")
    shell.press("Tab", "Tab")
    shell.wait_for(lambda text: {"1", "2"} <= set(text.replace("(", " ").split()))
    complete(
        shell,
        "mino --home $MINO_HOME history forget 1 --dry-run 2",
        "mino --home $MINO_HOME history forget 1 --dry-run 2",
    )


def test_a_program_that_fails_takes_nothing_away(shell: Window, tmp_path: Path) -> None:
    (tmp_path / "bin" / "mino").write_text("#!/bin/sh\necho broken >&2; exit 70\n")
    complete(shell, "mino history verify no", r"mino history verify notes\ 1.jsonl")
