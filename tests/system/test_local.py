"""`--local`: a real model in the process, and how the process ends with it (spec section 12)."""

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine import needs_engine, small_model
from tests.server import wait_until
from tests.system.program import PATIENCE, Ended, Program, finish, read_until, sent_texts

FRANCE = "What is the capital of France?"
ENDLESS = "Write a poem about rain."  # the small model does not come to an end of it
LONG = "word " * 7000  # takes the engine tens of seconds to read, before its first word
SOON = 10.0  # seconds that an end may take on a busy machine; waiting for the engine takes far longer

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def end_by(mino: Program, signum: int, *arguments: str, when: Callable[[], bool] | None = None) -> Ended:
    """Start `mino ask --local`, send it `signum` when it answers or `when` is true, and see that it ends promptly."""
    process = mino.start("ask", "--local", *arguments)
    if when:
        wait_until(when, PATIENCE)
    else:
        read_until(process.stdout, b" ")
    began = time.monotonic()
    process.send_signal(signum)
    ended = finish(process)
    assert time.monotonic() - began < SOON
    return ended


def fake_engine(mino: Program, folder: Path, load: str) -> None:
    """Put an engine before the real one whose loading is the code `load`, for what no real model does reliably."""
    model = folder / "model.gguf"
    model.write_bytes(b"GGUF")
    mino.environ["MINO_LOCAL_MODEL"] = str(model)
    mino.environ["PYTHONPATH"] += f":{folder}"
    (folder / "xllamacpp.py").write_text(f"""
import collections, itertools, os, signal
from pathlib import Path
from unittest.mock import MagicMock as CommonParams

def Server(params):
    Path({str(folder / "loading")!r}).touch()
    {load}
    raise RuntimeError
""")


@needs_engine
def test_it_answers_and_the_second_question_knows_the_first(mino: Program) -> None:
    first = mino.run("ask", "--local", FRANCE)
    assert (first.status, first.err) == (0, "")
    assert "Paris" in first.out
    body = mino.run("ask", "--local", "--dry-run", "And of Italy?").json
    assert sent_texts(body) == [FRANCE, first.out.rstrip("\n"), "And of Italy?"]
    second = mino.run("ask", "--local", "And of Italy?")
    assert (second.status, second.err) == (0, "")
    assert "Rome" in second.out
    assert mino.types() == ["user_message", "assistant_message", "completed"] * 2


@needs_engine
def test_it_ends_well_and_quietly_every_time(mino: Program) -> None:
    for _ in range(5):
        ended = mino.run("ask", "--local", "--no-history", FRANCE)
        assert (ended.status, ended.err) == (0, "")
        assert "Paris" in ended.out


@needs_engine
def test_it_needs_no_key_and_asks_no_other_server(mino: Program) -> None:
    mino.environ |= {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_KEY": "sk-secret",
        "http_proxy": "http://127.0.0.1:9",
    }
    answer = mino.run("ask", "--local", "--json", "Hello").json
    assert answer["model"] == "SmolLM2-135M-Instruct"
    assert answer["text"]


@needs_engine
def test_another_model_file_is_used_under_its_name(mino: Program, tmp_path: Path) -> None:
    model = tmp_path / "模型.gguf"
    model.symlink_to(small_model())
    mino.environ["MINO_LOCAL_MODEL"] = str(model)
    assert mino.run("ask", "--local", "--dry-run", "Hello").json["model"] == "模型"
    mino.environ["MINO_LOCAL_MODEL"] = "/nowhere.gguf"
    assert mino.run("ask", "--local", "-m", str(model), "--dry-run", "Hello").json["model"] == "模型"
    mino.environ["MINO_LOCAL_MODEL"] = str(model)
    process = mino.start("ask", "--local", "-m", model.name, "Hello")
    assert read_until(process.stdout, b" ")
    process.terminate()
    finish(process)


# Its end


@needs_engine
@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_ends_it_while_it_generates(mino: Program, signum: int) -> None:
    ended = end_by(mino, signum, ENDLESS)
    assert (ended.status, ended.err) == (-signum, "")
    assert mino.types() == ["user_message", "cancelled"]


@needs_engine
def test_a_signal_ends_it_while_it_reads_the_question(mino: Program) -> None:
    ended = end_by(mino, signal.SIGINT, LONG, when=lambda: bool(mino.files() and mino.session.stat().st_size))
    assert (ended.status, ended.out, ended.err) == (-signal.SIGINT, "", "")
    assert mino.types() == ["user_message", "cancelled"]


@needs_engine
def test_a_reader_that_goes_ends_it(mino: Program) -> None:
    process = mino.start("ask", "--local", ENDLESS)
    read_until(process.stdout, b" ")
    assert process.stdout
    process.stdout.close()
    began = time.monotonic()
    assert process.wait() == -signal.SIGPIPE
    assert time.monotonic() - began < SOON
    assert mino.types() == ["user_message", "cancelled"]


@needs_engine
def test_a_time_out_does_not_wait_for_the_engine(mino: Program) -> None:
    began = time.monotonic()
    ended = mino.run("ask", "--local", "--timeout", "1", LONG)
    assert time.monotonic() - began < SOON
    assert ended.status == 69
    assert "for 1 s" in ended.err
    assert mino.types() == ["user_message", "failed"]


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_ends_it_while_the_model_loads(mino: Program, tmp_path: Path, signum: int) -> None:
    # Like the real one, this engine does not let the interpreter run while it loads; it never finishes.
    fake_engine(mino, tmp_path, "collections.deque(itertools.repeat(None), maxlen=0)")
    ended = end_by(mino, signum, FRANCE, when=(tmp_path / "loading").exists)
    assert (ended.status, ended.out, ended.err) == (-signum, "", "")
    assert not mino.files()


def test_a_signal_that_is_ignored_stays_so_while_the_model_loads(mino: Program, tmp_path: Path) -> None:
    fake_engine(mino, tmp_path, "os.kill(os.getpid(), signal.SIGINT)")
    ended = mino.run("ask", "--local", FRANCE, prefix=["sh", "-c", 'trap "" INT; exec "$@"', "sh"])
    assert ended.status == 78
    assert (tmp_path / "loading").exists()


# What it cannot do


def test_without_the_engine_it_says_how_to_install_it(mino: Program, tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ModuleNotFoundError")
    mino.environ["PYTHONPATH"] += f":{tmp_path}"
    ended = mino.run("ask", "--local", FRANCE)
    assert (ended.status, ended.out) == (78, "")
    assert ended.err == (
        "mino: the embedded engine is not installed\nhint: in a checkout of Mino: pip install '.[local]'\n"
    )
    assert not mino.files()


@needs_engine
def test_a_model_that_is_cut_short_is_told(mino: Program, tmp_path: Path) -> None:
    model = tmp_path / "half.gguf"
    with small_model().open("rb") as whole:
        model.write_bytes(whole.read(4 << 20))
    mino.environ["MINO_LOCAL_MODEL"] = str(model)
    ended = mino.run("ask", "--local", FRANCE)
    assert (ended.status, ended.out) == (78, "")
    assert f"mino: the engine cannot load the model file '{model}': " in ended.err
    assert "incomplete" in ended.err
    assert not mino.files()


def test_a_model_that_is_not_there_is_told(mino: Program, tmp_path: Path) -> None:
    fake_engine(mino, tmp_path, "pass")
    mino.environ["MINO_LOCAL_MODEL"] = str(tmp_path / "没有.gguf")
    ended = mino.run("ask", "--local", FRANCE)
    assert ended.status == 66
    assert f"'{tmp_path}/没有.gguf' does not exist" in ended.err
    assert not mino.files()


@needs_engine
def test_the_context_is_as_large_as_the_setting_says(mino: Program) -> None:
    mino.home.mkdir(mode=0o700)
    (mino.home / "config.toml").write_text("local = true\nlocal_context = 100\n")
    full = mino.run("ask", "--no-history", "Tell me a very long story about a king, with every detail.")
    assert full.status == 3 and re.search(r"the model's context of \d+ tokens is full", full.err), full.err
    too_long = mino.run("ask", "--no-history", "word " * 1000)
    assert too_long.status == 69 and "too long for the model" in too_long.err
