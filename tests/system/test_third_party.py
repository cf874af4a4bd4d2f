"""Three turns with servers that nobody here wrote; their own logs show the conversation that reached them.

llama.cpp's server runs with the settings it comes with, the small model, and its log of prompts: what the model was
really given. codex-relay is a gateway that turns Responses into Chat Completions; it logs the messages it was sent.
"""

import json
import os
import re
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine import needs_engine, serving, small_model
from tests.system.program import PATIENCE, Program

pytestmark = [pytest.mark.thirdparty, needs_engine]

LLAMA = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.path_prompts_log_dir = sys.argv[1:]
params.verbosity = 0
params.sampling.temp = 0
params.n_ctx, params.n_predict = 4096, 40
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
RELAY = Path(sysconfig.get_path("scripts")) / "codex-relay"
INSTRUCTIONS = "Answer in one short sentence. 简短一点。"
QUESTIONS = ["My name is 王小明 🙂 and I live in Oslo.", "What is the capital of France?", "Where do I live?"]

Said = list[tuple[str, str]]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """Where llama.cpp logs its prompts, one file each."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    return folder


@pytest.fixture
def llama(prompts: Path) -> Iterator[str]:
    """llama.cpp's server with the small model."""
    with serving(LLAMA, str(small_model()), str(prompts)) as url:
        yield f"{url}/v1"


@contextmanager
def relay(upstream: str, log: Path) -> Iterator[str]:
    """codex-relay in front of `upstream`, logging to the folder `log`."""
    words: list[str | Path] = [RELAY, "--port", "0", "--upstream", upstream, "--record-corpus", log]
    environ = {"NO_COLOR": "1", "PATH": os.defpath}
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ, cwd=log.parent
    )
    end = threading.Timer(PATIENCE, process.kill)  # so that a relay that says nothing ends the test
    end.start()
    assert process.stdout
    try:
        for line in process.stdout:
            if listening := re.search(r"listening on (127\.0\.0\.1:\d+)", line):
                end.cancel()
                yield f"http://{listening[1]}/v1"
                return
        pytest.fail("codex-relay did not start")
    finally:
        end.cancel()
        process.kill()
        process.communicate()


def talk(mino: Program, base_url: str) -> Said:
    """Ask the three questions, and give all that was said, the instructions first, the last answer last."""
    mino.home.mkdir(mode=0o700)
    (mino.home / "SOUL.md").write_text(INSTRUCTIONS)
    said = [("system", INSTRUCTIONS)]
    for question in QUESTIONS:
        ended = mino.run("ask", "--base-url", base_url, "--model", "smollm2", question)
        assert (ended.status, ended.err) == (0, "")
        answer = mino.records()[-2]["text"]
        assert ended.out.removesuffix("\n") == answer.removesuffix("\n")
        said += [("user", question), ("assistant", answer)]
    assert mino.types() == ["user_message", "assistant_message", "completed"] * 3
    assert mino.run("history", "verify").status == 0
    return said


def read_prompts(folder: Path) -> list[Said]:
    """What the model was given, request by request, in the small model's own markup (ChatML)."""
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    marked = re.compile(r"<\|im_start\|>(system|user|assistant)\n(.*?)<\|im_end\|>", re.DOTALL)
    return [marked.findall(path.read_text()) for path in files]


def read_messages(folder: Path) -> list[Said]:
    """What the relay was sent, request by request, each with the answer it passed on."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    return [[(message["role"], message["content"]) for message in json.loads(line)["messages"]] for line in lines]


def test_llama_cpp_gets_the_whole_conversation(mino: Program, llama: str, prompts: Path) -> None:
    said = talk(mino, llama)
    assert read_prompts(prompts) == [said[:2], said[:4], said[:6]]


@pytest.mark.skipif(not RELAY.exists(), reason="needs pip install '.[test]', of which codex-relay is a part")
def test_a_gateway_gets_it_and_passes_it_on(mino: Program, llama: str, prompts: Path, tmp_path: Path) -> None:
    log = tmp_path / "relay"
    log.mkdir()
    with relay(llama, log) as base_url:
        said = talk(mino, base_url)
    assert read_messages(log) == [said[:3], said[:5], said[:7]]
    assert read_prompts(prompts) == [said[:2], said[:4], said[:6]]
