"""The record layer: how fast `verify` is, what memory it takes, and what a history costs `ask` and `show`."""

from collections.abc import Iterator
from pathlib import Path

from bench.histories import write_records
from bench.measure import Command, Spread, added, alternately, cpus, ratios, spread, walls
from bench.row import Row, compared
from bench.workbench import SESSION, Workbench, settle

MEGABYTE = 1_000_000
LEAST_RATE = 0.6
MOST_MEMORY = 20 * MEGABYTE
MOST_ADDED = 2.0
MOST_SHOW = 1.5


def rates(bench: Workbench) -> Iterator[Row]:
    """`verify` against orjson alone, as a share of its rate."""
    size = (30 if bench.quick else 100) * MEGABYTE  # with less, both times are mostly start-up
    for record in (300, 4096):
        for output in (True, False):
            file = bench.files / "records.jsonl"
            turns = write_records(file, size, record, output=output)
            settle(file)
            verify = bench.mino(bench.files, "history", "verify", str(file))
            mino, floor = alternately([verify, bench.floor("parse", str(file))], bench.rounds)
            file.unlink()
            shape = "with an output item" if output else "without output"
            figure = ratios(walls(floor), walls(mino))
            yield Row(
                "rate",
                f"mino history verify, {size // MEGABYTE} MB of {record}-byte records, {shape}",
                f">= {LEAST_RATE:g} of orjson's rate",
                figure,
                ratios(cpus(floor), cpus(mino)),
                figure.median >= LEAST_RATE,
                f"{turns:,} turns; {_rate(size, walls(mino))} against {_rate(size, walls(floor))}",
                {"mino": spread(walls(mino)), "orjson": spread(walls(floor))},
            )


def memory(bench: Workbench) -> Iterator[Row]:
    """The peak memory of `verify` on a large file beyond that on a small one; in bytes, and not noisy."""
    large, small = (100 if bench.quick else 1000) * MEGABYTE, 10 * MEGABYTE
    for record in (4096, 300):
        peaks = []
        for size in (small, large):
            file = bench.files / "records.jsonl"
            turns = write_records(file, size, record, output=True)
            verify = bench.mino(bench.files, "history", "verify", str(file))
            peaks.append(sorted(verify.run().rss for _ in range(3)))
            file.unlink()
        more = [a - b for a, b in zip(peaks[1], peaks[0], strict=True)]
        yield Row(
            "memory",
            f"memory of verify, {large // MEGABYTE} MB and 10 MB of {record}-byte records: difference in MB",
            f"<= {MOST_MEMORY // MEGABYTE} MB",
            Spread(more[0] / MEGABYTE, more[1] / MEGABYTE, more[2] / MEGABYTE),
            met=more[1] <= MOST_MEMORY,
            note=f"{turns:,} turns; peaks {peaks[0][1] / MEGABYTE:.0f} and {peaks[1][1] / MEGABYTE:.0f} MB",
        )


def history(bench: Workbench) -> Iterator[Row]:
    """What each 1,000 turns of history add to `ask`, against orjson reading, parsing and serialising them."""
    for count in (10_000,) if bench.quick else (10_000, 100_000):
        commands = [bench.ask(count), bench.ask(0), *(_reserialise(bench, number) for number in (count, 0))]
        more, less, floor_more, floor_less = alternately(commands, bench.rounds)
        mino, floor = added(walls(more), walls(less)), added(walls(floor_more), walls(floor_less))
        figure = ratios(mino, floor)
        cpu = ratios(added(cpus(more), cpus(less)), added(cpus(floor_more), cpus(floor_less)))
        thousands = count / 1000
        yield Row(
            "history",
            f"mino ask, added cost of {count:,} turns",
            f"<= {MOST_ADDED:g} x orjson",
            figure,
            cpu,
            figure.median <= MOST_ADDED,
            f"{_milliseconds(mino, thousands)} per 1,000 turns against {_milliseconds(floor, thousands)}",
            {"mino": spread(mino), "orjson": spread(floor)},
        )


def show(bench: Workbench) -> Iterator[Row]:
    """The last turns of a long session against checking it."""
    count = 10_000 if bench.quick else 100_000
    home = bench.home(count)
    commands = [bench.mino(home, "history", "show", "-n", "10"), bench.mino(home, "history", "verify")]
    last, verify = alternately(commands, bench.rounds)
    what = f"mino history show -n 10, {count:,} turns"
    yield compared("show", what, last, verify, names=("show", "verify"), most=MOST_SHOW)


def _reserialise(bench: Workbench, count: int) -> Command:
    return bench.floor("reserialise", str(session_of(bench.home(count))))


def session_of(home: Path) -> Path:
    """The session file of a home that the workbench made."""
    return home / "sessions" / SESSION


def _rate(size: int, seconds: list[float]) -> str:
    return f"{size / MEGABYTE / spread(seconds).median:.0f} MB/s"


def _milliseconds(seconds: list[float], thousands: float) -> str:
    return f"{spread(seconds).median * 1000 / thousands:.2f} ms"
