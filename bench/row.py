"""One line of the table: a figure, its bound, and whether it is met."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.measure import Run, Spread, cpus, ratios, spread, walls


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of the benchmark.

    `figure` is what the bound is about (None: not measured, and `note` says why), `cpu` the same of CPU time. `met` is
    None where there is no bound or no figure. `seconds` has the medians that the figure was made of.
    """

    group: str
    what: str
    bound: str = ""
    figure: Spread | None = None
    cpu: Spread | None = None
    met: bool | None = None
    note: str = ""
    seconds: dict[str, Spread] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The row for the results file."""
        return asdict(self)


def compared(
    group: str,
    what: str,
    mino: Sequence[Run],
    other: Sequence[Run],
    *,
    names: tuple[str, str],
    most: float | None,
    note: str = "",
) -> Row:
    """The row of whole processes: the wall time of `mino` by that of `other`, at most `most`."""
    figure = ratios(walls(mino), walls(other))
    return Row(
        group,
        what,
        "" if most is None else f"<= {most:g} x {names[1]}",
        figure,
        ratios(cpus(mino), cpus(other)),
        None if most is None else figure.median <= most,
        note,
        dict(zip(names, (spread(walls(mino)), spread(walls(other))), strict=True)),
    )
