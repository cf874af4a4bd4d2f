"""What one turn asks of the disk, counted with strace: nothing here is a time."""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator

from bench.measure import Spread
from bench.row import Row
from bench.rows.records import session_of
from bench.traces import Call, is_possible, trace
from bench.workbench import Workbench

WHAT = "system calls of one turn on the session file"
BOUND = "2 writes, 2 syncs, 1 open, read once"


def rows(bench: Workbench) -> Iterator[Row]:
    """Appends, syncs and reads of the session file in one `mino ask`."""
    if not is_possible():
        yield Row("disk", WHAT, BOUND, note="not measured: strace is not installed, or may not trace")
        return
    command = bench.ask(1000)
    if command.prepare:
        command.prepare()
    file = session_of(bench.home(1000))
    size = file.stat().st_size
    try:
        calls = trace(command.argv, {"PATH": os.environ["PATH"], **command.environ}, file.resolve())
    except subprocess.CalledProcessError as error:
        yield Row("disk", WHAT, BOUND, note=f"not measured: it ended with {error.returncode}")
        return
    counts = Counter(call.name for call in calls)
    read = read_bytes(calls)
    met = counts["write"] == 2 and syncs(calls) == 2 and counts["open"] == 1 and read == size
    total = float(counts.total())
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    note = f"{told}; {read:,} bytes read of {size:,}"
    yield Row("disk", WHAT, BOUND, Spread(total, total, total), met=met, note=note)


def syncs(calls: list[Call]) -> int:
    """How many of `calls` were syncs."""
    return sum(call.name in ("fsync", "fdatasync") for call in calls)


def read_bytes(calls: list[Call]) -> int:
    """How many bytes `calls` read."""
    return sum(call.result for call in calls if call.name in ("read", "pread64", "readv"))
