"""The types, the rules of the linter and the form of the code are part of the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "words", [["mypy"], ["ruff", "check", "--no-cache"], ["ruff", "format", "--check", "--no-cache"]], ids=" ".join
)
def test_a_tool_has_nothing_to_say(words: list[str]) -> None:
    run = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_types_are_strict() -> None:
    configuration = (ROOT / "setup.cfg").read_text()
    assert "\nstrict = True\n" in configuration and "\nfiles = mino, tests, bench\n" in configuration
