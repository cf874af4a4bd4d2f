"""What the tests of copies share: a folder, and the content of open conversations."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mino.sessions import saved
from mino.sessions.saved import Content

ContentOf = Callable[[bytes], Content]


@pytest.fixture
def content_of(tmp_path: Path) -> Iterator[ContentOf]:
    """Makes the content of an open conversation, which is closed at the end."""
    with ExitStack() as stack:

        def make(data: bytes) -> Content:
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
            path.write_bytes(data)
            return stack.enter_context(saved.open_ended(str(path)))

        yield make


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "saved"
    made.mkdir()
    return made
