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


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)


@pytest.fixture
def files(mino: Program, tmp_path: Path) -> None:
    (tmp_path / "person.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "信.txt").write_text("Ada Lovelace is 36 years old. 艾达")
    (tmp_path / "dot.png").write_bytes(PNG)
    mino.home.mkdir(mode=0o700)


def configure(mino: Program, base_url: str) -> None:
    (mino.home / "config.toml").write_text(
        f'service = "mine"\n[services.mine]\nbase_url = "{base_url}"\nmodel = "smollm2"\n'
    )


@pytest.mark.usefixtures("files")
def test_llama_cpp_does_with_options_files_and_schemas_what_it_can(mino: Program, llama: str, prompts: Path) -> None:
    configure(mino, llama)
    checked = mino.run("config", "check")
    assert checked.status == 0 and "streaming: yes\nschema: ignored" in checked.out, checked
    cut = mino.run("ask", "--no-history", "-o", "max_output_tokens=3", "Tell me a story.")
    assert cut.status == 3 and "max_output_tokens: it has 3" in cut.err  # it says that the answer is completed
    question = ["ask", "--no-history", "--schema", "person.json", "-a", "信.txt", "Who is it?"]
    ignored = mino.run(*question)
    assert ignored.status == 65 and "does not fit 'person.json'" in ignored.err
    grammar = mino.run(*question, "--json", "-o", f"json_schema={json.dumps(SCHEMA)}")
    assert grammar.status == 0 and grammar.json["parsed"].keys() == {"name", "age"}
    assert "信.txt:\nAda Lovelace is 36 years old. 艾达\n" in read_prompts(prompts)[-1][-1][1]
    refused = mino.run("ask", "-a", "dot.png", "--retries", "0", "What is this?")
    assert refused.status == 69 and "image input is not supported" in refused.err


@pytest.mark.usefixtures("files")
def test_the_embedded_engine_writes_what_fits_and_knows_the_file_afterwards(mino: Program) -> None:
    first = mino.run("ask", "--local", "--schema", "person.json", "-a", "信.txt", "Who is it?", "--json")
    assert (first.status, first.err) == (0, "") and first.json["parsed"].keys() == {"name", "age"}
    (mino.home.parent / "信.txt").unlink()
    second = mino.run("ask", "--local", "-o", "max_output_tokens=60", "Repeat the letter.")
    assert second.status in (0, 3) and "mino: Warning" not in second.err
    sent = mino.run("ask", "--local", "--dry-run", "q").json["input"][0]["content"]
    assert sent[0]["text"] == "信.txt:\nAda Lovelace is 36 years old. 艾达\n"
    odd = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)y"}}, "required": ["a"]}
    (mino.home.parent / "odd.json").write_text(json.dumps(odd))
    said = mino.run("ask", "--local", "--no-history", "--schema", "odd.json", "Say y.")
    assert said.status in (65, 3)  # and the engine's own warnings are not on stderr, which `run` checks


@pytest.mark.skipif(not RELAY.exists(), reason="needs pip install '.[test]', of which codex-relay is a part")
@pytest.mark.usefixtures("files")
def test_a_gateway_does_with_options_files_and_schemas_what_it_can(mino: Program, llama: str, tmp_path: Path) -> None:
    log = tmp_path / "relay"
    log.mkdir()
    with relay(llama, log) as base_url:
        configure(mino, base_url)
        checked = mino.run("config", "check")
        assert checked.status == 0 and "streaming: yes\nschema: ignored" in checked.out, checked
        assert "SmolLM2" in mino.run("config", "models").out
        cut = mino.run("ask", "--no-history", "-o", "max_output_tokens=3", "-o", "temperature=0.5", "Tell me a story.")
        assert cut.status == 3
        ignored = mino.run("ask", "--no-history", "--schema", "person.json", "-a", "信.txt", "Who is it?")
        assert ignored.status == 65 and "does not fit 'person.json'" in ignored.err
        refused = mino.run("ask", "--no-history", "-a", "dot.png", "--retries=0", "What is this?", "--json")
        assert refused.status == 69 and "image input is not supported" in refused.json["error"]["message"]
    asked = [said[0][1] for said in read_messages(log)]
    assert asked[-1] == "信.txt:\nAda Lovelace is 36 years old. 艾达\nWho is it?"  # it joins the parts as they are
