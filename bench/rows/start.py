"""Start-up: whole processes against the imports that they cannot do without."""

from collections.abc import Iterator

from bench.measure import Command, alternately
from bench.row import Row, compared
from bench.workbench import IMPORT_CLICK, IMPORT_RECORDS, Workbench

MOST = 1.15


def rows(bench: Workbench) -> Iterator[Row]:
    """`--version`, `verify`, `show -n 1` and `ask` without a history."""
    small = bench.home(10)
    yield _row(bench, "mino --version", bench.mino(small, "--version"), _imports(bench, IMPORT_CLICK))
    records = _imports(bench, IMPORT_RECORDS)
    yield _row(bench, "mino history verify, 10 turns", bench.mino(small, "history", "verify"), records)
    yield _row(bench, "mino history show -n 1, 10 turns", bench.mino(small, "history", "show", "-n", "1"), records)
    yield _row(bench, "mino ask, no history, instant server", bench.ask(0), _turn(bench), "imports and two syncs")


def _imports(bench: Workbench, code: str) -> Command:
    return bench.python("floor", "-c", code)


def _turn(bench: Workbench) -> Command:
    file = bench.files / "turn"
    file.touch()
    return bench.floor("turn", str(file))


def _row(bench: Workbench, what: str, command: Command, floor: Command, name: str = "") -> Row:
    mino, least = alternately([command, floor], bench.rounds)
    return compared("start", what, mino, least, names=("mino", name or floor.argv[-1]), most=MOST)
