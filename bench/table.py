"""The table for a person, and the machine that it was made on."""

import os
import platform
import textwrap
from collections.abc import Sequence
from typing import Any

from bench.measure import Spread
from bench.row import Row

_WIDTH = 132
_VERDICTS = {True: "met", False: "MISSED", None: "-"}


def write_row(row: Row) -> str:
    """A row as two or three lines: what and verdict; the figures; the note."""
    lines = [f"{_VERDICTS[row.met]:7}{row.what}"]
    facts = [
        f"{row.figure}" if row.figure else "not measured",
        f"bound {row.bound}" if row.bound else "no bound",
        f"CPU {row.cpu}" if row.cpu else "",
        ", ".join(f"{name} {_seconds(each)}" for name, each in row.seconds.items()),
    ]
    lines.append(" " * 7 + "  |  ".join(filter(None, facts)))
    lines += textwrap.wrap(row.note, _WIDTH, initial_indent=" " * 7, subsequent_indent=" " * 7)
    return "\n".join(lines)


def write_summary(rows: Sequence[Row]) -> str:
    """How many bounds are met."""
    met, missed = sum(row.met is True for row in rows), sum(row.met is False for row in rows)
    return f"{met} bounds met, {missed} missed, {sum(row.figure is None for row in rows)} rows not measured"


def describe_machine() -> dict[str, Any]:
    """What the figures depend on besides the programs."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg(),
    }


def _seconds(each: Spread) -> str:
    return f"{each.median * 1000:.0f} ms" if each.median < 1 else f"{each.median:.2f} s"
