"""Which modules a command loads: start-up time is part of what a shell command is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "data" / "cases"
SESSION = "0193a0b1c2d37000800000000000000a.jsonl"

HEAVY = {
    "requests",
    "urllib3",
    "jsonschema",
    "jsonschema_rs",
    "prompt_toolkit",
    "xllamacpp",
    "orjson",
    "asyncio",
    "ssl",
}
DISK = {"orjson", "jsonschema_rs"}

RUN = """
import json, sys
from pathlib import Path
place, *sys.argv = sys.argv[1:]
from mino.__main__ import run
status = run()
modules = sorted({name.split(".")[0] for name in sys.modules} | {name for name in sys.modules if name[:5] == "mino."})
Path(place).write_text(json.dumps([status, modules]))
"""


def modules_of(home: Path, *words: str) -> tuple[int, set[str]]:
    """The exit status of `mino WORDS`, and what it had loaded at its end."""
    place = home / "modules.json"
    environ = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "MINO_HOME": str(home),
        "HOME": str(home),
        "PATH": os.environ.get("PATH", ""),
    }
    command = [sys.executable, "-c", RUN, str(place), "mino", *words]
    subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True)
    status, modules = json.loads(place.read_text())
    return status, set(modules)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "sessions").mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    (tmp_path / "sessions" / SESSION).write_bytes((CASES / "good-two-turns.jsonl").read_bytes())
    return tmp_path


def test_completing_commands_and_options_loads_nothing(home: Path) -> None:
    for words in (["bash"], ["bash", "mino history ver", "ver"], ["zsh", "ask", "--mo"], ["fish", "verify", ""]):
        status, modules = modules_of(home, "completion", words[0], "--", *words[1:])
        assert status == 0
        assert not modules & HEAVY
        assert not any(name.startswith(("mino.journal", "mino.responses", "mino.sessions")) for name in modules)


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["ask", "--help"], ["history", "--help"]])
def test_version_and_help_load_nothing(home: Path, words: list[str]) -> None:
    status, modules = modules_of(home, *words)
    assert status == 0
    assert not modules & HEAVY
    assert not any(name.startswith(("mino.journal", "mino.responses", "mino.commands")) for name in modules)


@pytest.mark.parametrize(
    "words",
    [
        ["history", "show"],
        ["history", "show", "--json"],
        ["history", "verify"],
        ["history", "verify", "--json"],
        ["history", "recover"],
    ],
)
def test_what_reads_a_valid_history_loads_no_network_and_no_explanations(home: Path, words: list[str]) -> None:
    status, modules = modules_of(home, *words)
    assert status == 0
    assert modules & HEAVY == DISK
    assert not any(name.startswith("mino.responses.") for name in modules)


def test_only_a_bad_record_is_explained(home: Path) -> None:
    bad = str(CASES / "seq-as-float.jsonl")
    status, modules = modules_of(home, "history", "verify", bad, str(CASES / "nul-in-the-middle.jsonl"))
    assert status == 65 and modules & HEAVY == DISK
    (home / "bad.jsonl").write_text('{"v":1,"seq":1,"type":"user_message","turn_id":"x","text":"?"}\n')
    status, modules = modules_of(home, "history", "verify", str(home / "bad.jsonl"))
    assert status == 65 and "jsonschema" in modules
    assert not modules & {"requests", "prompt_toolkit", "xllamacpp"}


def test_a_request_that_is_only_printed_loads_no_network(home: Path) -> None:
    status, modules = modules_of(home, "ask", "--dry-run", "你好")
    assert status == 0
    assert modules & HEAVY == DISK


def test_a_question_loads_the_network_and_nothing_of_chat_or_the_engine(home: Path) -> None:
    status, modules = modules_of(home, "ask", "--base-url", "http://127.0.0.1:1/v1", "--retries", "0", "你好")
    assert status == 69
    assert "requests" in modules
    assert not modules & {"jsonschema", "prompt_toolkit", "xllamacpp", "asyncio"}
