"""Rows and their words: a bound is met or missed by the median, and a peer that is not there is told."""

from pathlib import Path
from typing import cast

import pytest

from bench.environments import Missing, install_npm, install_python
from bench.measure import Run, Spread
from bench.peers import Codex
from bench.row import Row, compared
from bench.rows import peers
from bench.server import Server
from bench.table import write_row, write_summary
from bench.workbench import Workbench


def runs(*seconds: float) -> list[Run]:
    """Runs of those wall times, half of it CPU."""
    return [Run(each, each / 2, 1) for each in seconds]


@pytest.mark.parametrize(("most", "met", "word"), [(2.0, True, "met"), (1.9, False, "MISSED"), (None, None, "-")])
def test_the_median_decides(most: float | None, met: bool | None, word: str) -> None:
    row = compared("g", "what", runs(1, 2, 9), runs(1, 1, 1), names=("mino", "floor"), most=most)
    assert row.met is met
    assert row.figure == row.cpu == Spread(1.5, 2, 5.5)
    assert write_row(row).startswith(word.ljust(7) + "what\n")
    assert "2 (1.5-5.5)" in write_row(row)


def test_what_was_not_measured_is_counted() -> None:
    rows = [Row("g", "a", met=True, figure=Spread(1, 1, 1)), Row("g", "b", "bound", note="missing: npm 不在")]
    assert write_summary(rows) == "1 bounds met, 0 missed, 1 rows not measured"
    assert "not measured" in write_row(rows[1])
    assert "missing: npm 不在" in write_row(rows[1])
    assert rows[0].as_json()["figure"] == {"low": 1, "median": 1, "high": 1}


def test_a_peer_that_cannot_be_installed_is_a_row_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(peers, "PEERS", (Codex,))
    monkeypatch.setattr(peers, "SIZES", ())
    with Server() as server:
        bench = Workbench(tmp_path, server, tmp_path, 9, quick=False)
        rows = list(peers.rows(bench, tmp_path, tmp_path))
    assert [(row.what, row.note) for row in rows] == [("mino ask against Codex CLI", "missing: npm is not installed")]


def test_a_failed_installation_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'no such package 包裹' >&2\nexit 1\n")
    npm.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(Missing, match="it could not be installed: no such package 包裹"):
        install_npm(tmp_path / "cache", "peer", "peer@1")


def test_what_is_installed_is_not_installed_again(tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()
    (tmp_path / "peer/installed.txt").write_text("peer==1\nother")
    assert install_python(tmp_path, "peer", ["peer==1", "other"]) == tmp_path / "peer/bin"
    assert cast("list[Path]", list(tmp_path.iterdir())) == [tmp_path / "peer"]
