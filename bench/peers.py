"""Other command-line clients, with the same turns in their own stores: how each is installed, filled and asked."""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from bench.environments import Missing, install_npm, install_python
from bench.histories import turns
from bench.measure import Command, Failed
from bench.server import Server

QUESTION = "And what is the capital of Spain?"


class Peer(Protocol):
    """A client to compare with. `name` is what the table calls it, `version` what is installed."""

    name: str
    version: str

    def command(self, count: int, limit: float) -> Command:
        """The command that asks one question after `count` turns; each time it is prepared, exactly these are there.

        Makes the history on first use. Raises Missing.
        """


class Llm:
    """llm, by its logs.db and `-c`; it asks the Responses API."""

    name = "llm"
    version = "0.36"

    def __init__(self, cache: Path, stores: Path, server: Server) -> None:
        self._bin = install_python(cache, "llm", [f"llm=={self.version}"])
        self._stores = stores
        self._server = server

    def command(self, count: int, limit: float) -> Command:
        home = self._stores / f"llm-{count}"
        original, database = self._stores / f"llm-{count}.db", home / "logs.db"
        home.mkdir(exist_ok=True)
        if not original.exists():
            script = Path(__file__).with_name("llm_store.py")
            _pipe_turns(count, [str(self._bin / "python"), str(script), str(_unfinished(original))])
            _finish(original)
        model = {"model_id": "bench", "model_name": "bench", "api_base": self._server.url, "responses": True}
        (home / "extra-openai-models.yaml").write_text(json.dumps([model]))  # JSON is YAML
        environ = {"HOME": str(home), "LLM_USER_PATH": str(home), "OPENAI_API_KEY": "none"}
        goes_on = ["-c"] if count else []

        def prepare() -> None:
            for leftover in home.glob("logs.db-*"):
                leftover.unlink()
            copy(original, database)

        argv = [str(self._bin / "llm"), "-m", "bench", *goes_on, QUESTION]
        return Command(self.name, argv, environ, prepare, limit)


class ShellGpt:
    """shell-gpt, by its chat cache and `--chat`; it asks the Chat Completions API, the only one it knows."""

    name = "shell-gpt"
    version = "1.5.1"

    def __init__(self, cache: Path, stores: Path, server: Server) -> None:
        # It imports click, and no longer gets it with typer.
        self._bin = install_python(cache, "shell-gpt", [f"shell-gpt=={self.version}", "click"])
        self._stores = stores
        self._server = server

    def command(self, count: int, limit: float) -> Command:
        home = self._stores / f"shell-gpt-{count}"
        chats = home / "chats"
        chats.mkdir(parents=True, exist_ok=True)
        original, chat = self._stores / f"shell-gpt-{count}.json", chats / "bench"
        environ = {
            "HOME": str(home),
            "OPENAI_API_KEY": "none",
            "API_BASE_URL": self._server.url,
            "CHAT_CACHE_PATH": str(chats),
            "CHAT_CACHE_LENGTH": str(10_000_000),  # by default it forgets all but the last hundred messages
            "CACHE_PATH": str(home / "cache"),
            "OPENAI_USE_FUNCTIONS": "false",
            "REQUEST_TIMEOUT": "600",
        }
        # Without --no-cache the same question after the same turns is answered from a file.
        argv = [str(self._bin / "sgpt"), "--no-cache", "--no-md", "--model", "bench", "--chat", "bench", QUESTION]
        empty = Command(self.name, argv, environ, lambda: chat.unlink(missing_ok=True), limit)
        if not count:
            return empty
        if not original.exists():
            empty.run()
            messages = json.loads(chat.read_bytes())[:1]  # its first message names the role it plays
            for question, answer in turns(count):
                messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            _unfinished(original).write_text(json.dumps(messages))
            _finish(original)
        return Command(self.name, argv, environ, lambda: copy(original, chat), limit)


class Codex:
    """Codex CLI, by a rollout file and `exec resume`; its native program, without the launcher for Node.js.

    A turn in the file has every line that Codex itself writes for one: it asks twice, and the lines of the second turn
    are the pattern for all others.
    """

    name = "Codex CLI"
    version = "0.171.0"

    def __init__(self, cache: Path, stores: Path, server: Server) -> None:
        modules = install_npm(cache, "codex", f"@openai/codex@{self.version}")
        programs = [path for path in modules.glob("@openai/codex*/**/bin/codex") if os.access(path, os.X_OK)]
        if not programs:
            raise Missing("its package has no program for this machine")
        self._program = programs[0]
        self._stores = stores
        self._server = server

    def command(self, count: int, limit: float) -> Command:
        home = self._stores / f"codex-{count}"
        work = home / "work"
        work.mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text(_CODEX_CONFIG.format(url=self._server.url))
        environ = {"HOME": str(home), "CODEX_HOME": str(home), "BENCH_KEY": "none"}

        def ask(*words: str, prepare: Callable[[], None] | None = None) -> Command:
            argv = [str(self._program), "exec", *words]
            return Command(self.name, argv, environ, prepare, limit, cwd=str(work))

        if not count:
            return ask("--skip-git-repo-check", QUESTION)
        noted = home / "rollout.txt"
        if not noted.exists():
            ask("--skip-git-repo-check", QUESTION).run()
            first = max((home / "sessions").rglob("rollout-*.jsonl"))
            head = first.read_text().splitlines()
            old = json.loads(head[0])["payload"]["id"]
            ask("resume", "--skip-git-repo-check", old, QUESTION).run()
            pattern = first.read_text().splitlines()[len(head) :]
            new = str(uuid.uuid4())
            rollout = first.with_name(first.name.replace(old, new))
            _write_rollout(rollout, [line.replace(old, new) for line in head], pattern, old, new, count)
            first.unlink()
            noted.write_text(f"{rollout}\n{rollout.stat().st_size}\n{new}")
        path, size, name = noted.read_text().split("\n")
        return ask("resume", "--skip-git-repo-check", name, QUESTION, prepare=lambda: os.truncate(path, int(size)))


_CODEX_CONFIG = """\
model = "bench"
model_provider = "bench"
approval_policy = "never"
sandbox_mode = "read-only"
# Without these it would sum up the history instead of sending it.
model_context_window = 1000000000
model_auto_compact_token_limit = 900000000
[model_providers.bench]
name = "bench"
base_url = "{url}"
wire_api = "responses"
env_key = "BENCH_KEY"
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = 600000
[analytics]
enabled = false
"""


def _write_rollout(path: Path, head: list[str], pattern: list[str], old: str, new: str, count: int) -> None:
    """`head`, the file's first turn, and then `count` - 1 turns made after the lines of `pattern`."""
    lines = [json.loads(line.replace(old, new)) for line in pattern if '"thread_settings_applied"' not in line]
    turn_id = next(line["payload"]["turn_id"] for line in lines if "turn_id" in line["payload"])
    texts = [json.dumps(line, ensure_ascii=False) for line in lines]
    ordinal, sequence = len(head), 5  # where its own count of lines and of messages goes on after one turn
    with path.open("w") as file:
        file.write("\n".join(head) + "\n")
        for number, (question, answer) in enumerate(turns(count - 1)):
            fresh = f"{turn_id[:24]}{number:012x}"
            for text in texts:
                line = json.loads(text.replace(turn_id, fresh))
                line["ordinal"] = ordinal
                ordinal += 1
                if "metadata" in line:
                    line["metadata"]["history_sequence"] = sequence
                    sequence += 1
                _say(line["payload"], question, answer)
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def _say(payload: dict[str, Any], question: str, answer: str) -> None:
    """Put the turn's texts into one line, wherever Codex keeps them."""
    said = payload.get("item", payload)
    theirs = said.get("role", said.get("type")) in ("user", "UserMessage")
    for part in said.get("content") or ():
        part["text"] = question if theirs else answer
    if "last_agent_message" in payload:
        payload["last_agent_message"] = answer


PEERS: tuple[Callable[[Path, Path, Server], Peer], ...] = (Codex, Llm, ShellGpt)


def copy(original: Path, place: Path) -> None:
    """Put the file back as it was made, and let the disk be done with it: a sync in the client must not pay for it."""
    shutil.copyfile(original, place)
    fd = os.open(place, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _finish(path: Path) -> None:
    _unfinished(path).rename(path)


def _pipe_turns(count: int, argv: list[str]) -> None:
    """Run a program that reads turns on standard input, one JSON array a line. Raises Failed."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = "".join(json.dumps(turn) + "\n" for turn in turns(count))
        _, said = process.communicate(lines)
    if process.returncode:
        raise Failed(f"its history could not be made: {said.strip().splitlines()[-1][:200]}")
