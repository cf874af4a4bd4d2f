"""`python -m bench`: measure, print the table as it grows, and write it as JSON into bench/results/."""

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from bench.environments import CHECKOUT, Missing, install_mino
from bench.measure import LEAST_ROUNDS, Failed
from bench.row import Row
from bench.rows import disk, peers, records, start, stream
from bench.server import Server, instant_reply
from bench.table import describe_machine, write_row, write_summary
from bench.workbench import Workbench

RESULTS = CHECKOUT / "bench/results"

Groups = Mapping[str, Callable[[], Iterator[Row]]]


def main() -> int:
    """Run the groups that were asked for; the exit status is 0 if every row could be measured."""
    options = _options()
    cache = options.cache.expanduser().resolve()
    try:
        programs = install_mino(cache)
    except Missing as missing:
        sys.stderr.write(f"bench: mino is missing: {missing}\n")
        return 1
    with Server() as server, tempfile.TemporaryDirectory(dir=cache, prefix="files-") as files:
        bench = Workbench(programs, server, Path(files), options.rounds, options.quick)
        groups = _groups(bench, cache)
        rows = list(_run(bench, groups, options.only or list(groups)))
    sys.stdout.write(write_summary(rows) + "\n")
    sys.stdout.write(f"written to {_save(rows, options.quick)}\n")
    return 0 if all(row.figure for row in rows) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small files and histories: a few minutes")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS, help=f"of each comparison, at least {LEAST_ROUNDS}")
    parser.add_argument("--only", action="append", choices=list(_GROUPS), help="this group of rows; may be repeated")
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/mino-bench"), help="where programs are installed")
    return parser.parse_args()


_GROUPS = ("start", "peers", "rate", "memory", "history", "disk", "stream", "show")


def _groups(bench: Workbench, cache: Path) -> Groups:
    return {
        "start": lambda: start.rows(bench),
        "peers": lambda: peers.rows(bench, cache, _stores(cache)),
        "rate": lambda: records.rates(bench),
        "memory": lambda: records.memory(bench),
        "history": lambda: records.history(bench),
        "disk": lambda: disk.rows(bench),
        "stream": lambda: _both(stream.costs(bench), stream.held_back(bench)),
        "show": lambda: records.show(bench),
    }


def _both(*rows: Iterator[Row]) -> Iterator[Row]:
    for some in rows:
        yield from some


def _stores(cache: Path) -> Path:
    """The folder of the peers' histories; another one when the code that makes them is another."""
    sources = [Path(__file__).with_name(name) for name in ("histories.py", "peers.py", "llm_store.py")]
    version = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    stores = cache / f"stores-{version}"
    stores.mkdir(parents=True, exist_ok=True)
    return stores


def _run(bench: Workbench, groups: Groups, wanted: list[str]) -> Iterator[Row]:
    for name in wanted:
        bench.server.reply = instant_reply
        try:
            for row in groups[name]():
                sys.stdout.write(write_row(row) + "\n")
                sys.stdout.flush()
                yield row
        except Failed as failure:
            row = Row(name, f"the rest of the group {name}", note=f"not measured: {failure}")
            sys.stdout.write(write_row(row) + "\n")
            yield row


def _save(rows: list[Row], quick: bool) -> Path:
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    result = {"time": now.isoformat(), "quick": quick, **describe_machine(), "rows": [row.as_json() for row in rows]}
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
