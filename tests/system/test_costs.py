"""What a command costs, where it can be counted and must stay true; times are the business of `python -m bench`."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench.histories import write_records, write_session
from bench.measure import Command, Run
from bench.traces import Call, is_possible, trace
from mino.journal.record import encode, user_message
from tests.homes import completed, make_home
from tests.server import ScriptedServer, delta, ended, events, item_done, message
from tests.system.program import Program, read_until

# What takes milliseconds to import; which of these a command loads is what its start-up costs.
HEAVY = {
    *("requests", "urllib3", "http.client", "ssl", "asyncio", "orjson", "jsonschema", "jsonschema_rs"),
    *("prompt_toolkit", "xllamacpp", "tomllib"),
}
WIRE = {"requests", "urllib3", "http.client", "ssl"}
RECORDS = {"orjson", "jsonschema_rs"}

traced = pytest.mark.skipif(not is_possible(), reason="strace is not installed, or may not trace")


def loaded(mino: Program, *words: str, status: int = 0) -> set[str]:
    """Which of the heavy modules `mino` loads for these arguments."""
    with mino.start(*words, env={"PYTHONPROFILEIMPORTTIME": "1"}) as process:
        _, err = process.communicate()
    assert process.returncode == status, err
    lines = [line for line in err.decode().splitlines() if line.startswith("import time:")]
    names = {line.rpartition("|")[2].strip() for line in lines}
    assert "mino.cli" in names
    return names & HEAVY


def fill(mino: Program, turns: int) -> Path:
    """Make a session of that many turns."""
    path = mino.write_session(b"")
    write_session(path, turns)
    return path


def traced_calls(mino: Program, file: Path, *words: str) -> list[Call]:
    """The system calls of a run of `mino` on `file`."""
    command = [os.fsdecode(word) for word in mino.command(*words)]
    return trace(command, mino.environ, file.resolve())


def names(calls: list[Call], *wanted: str) -> list[str]:
    """The names of those of `calls` that are `wanted`, in order."""
    return [call.name for call in calls if call.name in wanted]


# Which modules are loaded


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["history", "verify", "--help"]])
def test_version_and_help_load_nothing_heavy(mino: Program, words: list[str]) -> None:
    assert loaded(mino, *words) == set()


@pytest.mark.parametrize("words", [["history", "verify"], ["history", "show"], ["history", "show", "--json"]])
def test_reading_a_valid_history_loads_no_network_and_no_explanations(mino: Program, words: list[str]) -> None:
    fill(mino, 3)
    assert loaded(mino, *words) == RECORDS


def test_only_a_bad_record_loads_the_library_that_explains_it(mino: Program) -> None:
    mino.write_session(encode(user_message(1, "巴黎", "法国的首都是哪里？")))
    assert loaded(mino, "history", "verify", status=65) >= {"jsonschema"}


def test_asking_loads_the_wire_and_the_records_alone(mino: Program, server: ScriptedServer) -> None:
    fill(mino, 3)
    assert loaded(mino, "ask", "法国的首都？") == RECORDS | WIRE
    assert len(server.requests) == 1


def test_a_dry_run_loads_no_network(mino: Program) -> None:
    fill(mino, 3)
    assert loaded(mino, "ask", "--dry-run", "法国的首都？") & {"requests", "urllib3", "ssl"} == set()


# What a turn asks of the disk


@traced
def test_a_turn_reads_the_file_once_and_writes_and_syncs_it_twice(mino: Program, server: ScriptedServer) -> None:
    file = fill(mino, 1000)
    size = file.stat().st_size
    calls = traced_calls(mino, file, "ask", "法国的首都？")
    changes = names(calls, "write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate")
    assert [name.replace("fdatasync", "fsync") for name in changes] == ["write", "fsync", "write", "fsync"]
    assert sum(call.result for call in calls if call.name == "write") == file.stat().st_size - size
    assert sum(call.result for call in calls if call.name == "read") == size
    assert len(names(calls, "open")) == 1
    assert len(server.requests[0].json["input"]) == 2001


@traced
@pytest.mark.parametrize("words", [["history", "verify"], ["history", "show", "-n", "1"], ["ask", "--dry-run", "问？"]])
def test_a_reader_opens_the_file_once_and_reads_it_once(mino: Program, words: list[str]) -> None:
    file = fill(mino, 1000)
    calls = traced_calls(mino, file, *words)
    assert len(names(calls, "open")) == 1
    assert sum(call.result for call in calls if call.name == "read") == file.stat().st_size
    assert set(names(calls, "write", "fsync", "fdatasync", "ftruncate", "mmap")) == set()


@traced
def test_a_turn_that_fails_writes_twice_too(mino: Program) -> None:
    file = fill(mino, 1)
    with ScriptedServer(events(delta("巴"), ended("failed", error={"message": "no"}))) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        command = [os.fsdecode(word) for word in mino.command("ask", "法国的首都？")]
        calls = trace(["sh", "-c", '"$@"; test $? = 69', "sh", *command], mino.environ, file.resolve())
    assert names(calls, "write", "fsync", "ftruncate") == ["write", "fsync", "write", "fsync"]


# Memory


def measure(mino: Program, *words: str) -> Run:
    """A run of `mino`, with its peak memory."""
    return Command("mino", [os.fsdecode(word) for word in mino.command(*words)], mino.environ).run()


def test_verify_needs_no_more_memory_for_a_larger_file(mino: Program, tmp_path: Path) -> None:
    peaks = []
    for megabytes in (4, 60):
        file = tmp_path / "file.jsonl"
        write_records(file, megabytes * 1_000_000, 4096, output=True)
        peaks.append(measure(mino, "history", "verify", str(file)).rss)
    # 5,000 turns more, whose ids are kept: under 1 MB. The rest is the allocator's own ups and downs.
    assert peaks[1] - peaks[0] < 8_000_000


def test_search_needs_no_more_memory_for_more_matches(mino: Program) -> None:
    """Every match of a file was held: 1.3 GB for a file of 200 MB."""
    homes = {count: mino.home / str(count) for count in (100, 10_000)}
    for count, home in homes.items():
        make_home(home, completed(*((f"问 {number}", "巴黎 🗼 \n" * 200) for number in range(count))))
    few, many = (measure(mino, "--home", str(home), "history", "search", "巴").rss for home in homes.values())
    assert many - few < 16_000_000


def test_a_long_answer_is_shown_in_little_memory(mino: Program) -> None:
    peaks = []
    for count in (10, 20_000):
        pieces = [delta("巴黎 🗼 ") for _ in range(count)]
        text = "巴黎 🗼 " * count
        with ScriptedServer(events(*pieces, item_done(message(text)), ended())) as server:
            mino.environ["OPENAI_BASE_URL"] = server.url
            peaks.append(measure(mino, "ask", "--no-history", "说说").rss)
    # The text has 280 kB; each of its pieces stays an object until the end.
    assert peaks[1] - peaks[0] < 20_000_000


# The answer on the screen


@pytest.mark.parametrize("ending", ["chunked", "close"])
def test_no_piece_of_an_answer_waits_for_the_next(mino: Program, ending: str) -> None:
    pieces = ["The ", "capital ", "是", "巴黎", " 🗼", ".\n"]
    gates = [threading.Event() for _ in pieces]
    steps = [step for piece, gate in zip(pieces, gates, strict=True) for step in (delta(piece), gate)]
    reply = events(*steps, item_done(message("".join(pieces))), ended(), ending=ending)  # type: ignore[arg-type]
    with ScriptedServer(reply) as server, mino.start("ask", "What?", server=server) as process:
        for piece, gate in zip(pieces, gates, strict=True):
            # The server goes on only when this piece is here, so a piece that waits is a test that hangs and fails.
            assert read_until(process.stdout, piece.encode()) == piece.encode()
            gate.set()
        assert process.wait() == 0
        assert process.stdout
        assert process.stdout.read() == b""


@traced
def test_pieces_that_came_together_are_written_together(mino: Program, tmp_path: Path) -> None:
    """A system call for each of a hundred thousand deltas would cost more than all else."""
    out = tmp_path / "out"
    out.touch()
    stream = [delta("巴黎 ") for _ in range(5000)]
    reply = events(*stream, item_done(message("巴黎 " * 5000)), ended(), ending="close")
    together = b"".join(step for step in reply.steps if isinstance(step, bytes))
    with ScriptedServer(type(reply)([together], 200, reply.headers, "close")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        command = [os.fsdecode(word) for word in mino.command("ask", "--no-history", "说说")]
        calls = trace(["sh", "-c", f'"$@" > {out}', "sh", *command], mino.environ, out.resolve())
    assert out.read_text() == "巴黎 " * 5000 + "\n"
    assert len(names(calls, "write")) < 500


def test_the_benchmark_needs_nothing_but_the_standard_library() -> None:
    """It measures from outside, and runs before anything is installed; `-S` leaves every other package out."""
    code = "import bench.__main__, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    environ = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run([sys.executable, "-Sc", code], env=environ, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {*sys.stdlib_module_names, "bench", "__main__"}
