"""Counting system calls: a real program under strace, and lines that threads have torn apart."""

import os
import sys
from pathlib import Path

import pytest

from bench.traces import Call, is_possible, read_calls, trace


@pytest.mark.skipif(not is_possible(), reason="strace is not installed, or may not trace")
def test_the_calls_on_one_file_are_counted_and_no_others(tmp_path: Path) -> None:
    file, other = tmp_path / "巴黎.jsonl", tmp_path / "other"
    file.write_bytes(b"x" * 10)
    code = (
        "import os, sys\n"
        "fd, other = [os.open(path, os.O_RDWR | os.O_CREAT) for path in sys.argv[1:]]\n"
        "os.read(fd, 4); os.write(other, b'zz'); os.fsync(other); os.read(fd, 9); os.write(fd, b'yyy'); os.fsync(fd)\n"
    )
    environ = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    calls = trace([sys.executable, "-ISc", code, str(file), str(other)], environ, file.resolve())
    assert calls == [Call("open", 0), Call("read", 4), Call("read", 6), Call("write", 3), Call("fsync", 0)]


def test_a_call_that_another_thread_interrupted_is_one_call() -> None:
    lines = [
        '12 openat(AT_FDCWD</home>, "/s.jsonl", O_RDWR|O_CLOEXEC) = 5</s.jsonl>',
        '12 write(5</s.jsonl>, ""..., 100 <unfinished ...>',
        '13 write(6</other>, ""..., 3) = 3',
        "12 <... write resumed>) = 100",
        "12 fsync(5</s.jsonl>)             = 0",
        "12 +++ exited with 0 +++",
    ]
    assert read_calls(lines, "/s.jsonl") == [Call("open", 0), Call("write", 100), Call("fsync", 0)]
