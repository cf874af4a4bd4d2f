"""The made-up histories are what Mino itself would have written, and of the size that the table says."""

from pathlib import Path

import pytest

from bench.histories import turns, write_records, write_session
from mino.journal import scan
from mino.journal.loader import Loading
from mino.journal.record import encode


def load(path: Path) -> Loading:
    """The loading of a file, done."""
    loading = Loading([path.read_bytes()], all_findings=True)
    list(loading)
    return loading


def test_a_session_is_clean_and_has_the_turns_that_the_peers_get(tmp_path: Path) -> None:
    write_session(tmp_path / "s", 25)
    loading = Loading([(tmp_path / "s").read_bytes()])
    read = list(loading)
    assert loading.report.state == "clean"
    assert [(turn.user, turn.assistant) for turn in read] == list(turns(25))
    assert "🗼" in (read[9].user + str(read[9].assistant) + read[59 % 25].user)
    assert all(turn.output and turn.output[0]["content"][0]["text"] == turn.assistant for turn in read)


def test_no_turns_are_an_empty_session(tmp_path: Path) -> None:
    write_session(tmp_path / "s", 0)
    assert (tmp_path / "s").read_bytes() == b""


@pytest.mark.parametrize("record", [300, 4096])
@pytest.mark.parametrize("output", [True, False])
def test_records_have_the_size_that_was_asked_for(tmp_path: Path, record: int, output: bool) -> None:
    count = write_records(tmp_path / "r", 600_000, record, output=output)
    data = (tmp_path / "r").read_bytes()
    report = load(tmp_path / "r").report
    assert report.state == "clean"
    assert report.records == 3 * count
    assert abs(len(data) / report.records - record) < record / 20
    assert (b'"output":[{' in data) is output


def test_the_lines_are_byte_for_byte_as_mino_writes_them(tmp_path: Path) -> None:
    write_session(tmp_path / "s", 12)
    lines = (tmp_path / "s").read_bytes().split(b"\n")[:-1]
    assert [encode(record) for record in scan.read(lines)] == [line + b"\n" for line in lines]  # type: ignore[arg-type]
