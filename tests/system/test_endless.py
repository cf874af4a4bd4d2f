"""What has no end or no content: devices and directories are refused at once, pipes are read, and text has a limit."""

import os
import sys
from pathlib import Path

import pytest

from tests.homes import case, make_home
from tests.system.program import Program

MAX_TEXT = 16_000_000
NAMING = [
    ("history", "verify", "FILE"),
    ("history", "show", "FILE"),
    ("history", "show", "--salvage", "FILE"),
    ("history", "export", "FILE"),
    ("history", "recover", "FILE"),
    ("history", "recover", "--salvage", "--dry-run", "FILE"),
    ("session", "import", "x", "FILE", "--from", "messages"),
    ("ask", "--dry-run", "--instructions", "FILE", "q"),
]
# Far less than any of them would take, and enough for the program itself.
MEMORY = [sys.executable, "-c", "import os, resource as r, sys; r.setrlimit(r.RLIMIT_AS, (1 << 30, 1 << 30)); "]
MEMORY[-1] += "os.execvp(sys.argv[1], sys.argv[1:])"


def put(mino: Program, words: tuple[str, ...], path: str) -> list[str]:
    make_home(mino.home, None)
    return [path if word == "FILE" else word for word in words]


@pytest.mark.parametrize("words", NAMING)
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty", "/dev", "link"])
def test_a_device_or_a_directory_is_refused(mino: Program, tmp_path: Path, words: tuple[str, ...], path: str) -> None:
    """`verify /dev/zero` took all memory, and ended with a traceback and 70."""
    if path == "link":
        path = str(tmp_path / "link")
        os.symlink("/dev/zero", path)
    ended = mino.run(*put(mino, words, path), prefix=MEMORY)
    assert ended.status == (78 if words[0] == "ask" else 74), ended.err
    assert f"'{path}'" in ended.err and "Traceback" not in ended.err and ended.out == ""


@pytest.mark.parametrize("name", ["SOUL.md", "config.toml"])
@pytest.mark.parametrize("target", ["/dev/zero", "/dev"])
def test_so_are_they_in_the_home(mino: Program, name: str, target: str) -> None:
    os.symlink(target, make_home(mino.home, None) / name)
    ended = mino.run("ask", "--dry-run", "q", prefix=MEMORY)
    assert ended.status == 78 and f"{name}' is neither a regular file nor a pipe" in ended.err and ended.out == ""


@pytest.mark.parametrize(("name", "status"), [("SOUL.md", 65), ("config.toml", 78)])
def test_instructions_and_settings_have_a_limit(mino: Program, name: str, status: int) -> None:
    path = make_home(mino.home, None) / name
    path.write_bytes(b"#" * (MAX_TEXT - 1) + b"\n")
    assert mino.run("ask", "--dry-run", "q").status == 0
    with path.open("ab") as file:
        file.write(b"\n")
    ended = mino.run("ask", "--dry-run", "q")
    assert ended.status == status and f"{name}' is too large: more than 16,000,000 bytes" in ended.err
    os.truncate(path, 1 << 40)  # it takes no room on a disk
    assert mino.run("ask", "--dry-run", "q", prefix=MEMORY).status == status


def test_a_pipe_is_read_where_reading_is_enough(mino: Program) -> None:
    make_home(mino.home, None)
    verified = mino.run("history", "verify", "/dev/stdin", stdin=case("torn-40-bytes"))
    assert verified.status == 1 and "recoverable: 6 records" in verified.out
    asked = mino.run("ask", "--dry-run", "--instructions", "/dev/stdin", "q", stdin="简短".encode())
    assert asked.status == 0 and asked.json["instructions"] == "简短"
    assert mino.run("history", "recover", "/dev/stdin", stdin=case("torn-40-bytes")).status == 74


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_tail_of_zeros_is_not_held(mino: Program, end: bytes) -> None:
    """400 MB of them took 844 MB."""
    make_home(mino.home, case("good-two-turns"))
    with mino.session.open("r+b") as file:
        file.seek(400_000_000)
        file.write(b"\0" + end)
    limited = [*MEMORY[:2], MEMORY[2].replace("1 << 30", "300_000_000")]
    for words in (("verify",), ("show",), ("recover", "--dry-run"), ("verify", "--json")):
        ended = mino.run("history", *words, prefix=limited)
        assert ended.status == (0 if words == ("show",) else 1), ended.err
