"""`history verify`: every finding, the worst state as the exit status, and nothing written."""

import io
import os
import re
import sys
from pathlib import Path

import pytest

from mino.commands.verify import verify
from mino.conversation import lock_home
from mino.errors import InvalidData
from mino.home import Home
from tests.unit.commands.homes import judge, make_home, session_of, write
from tests.unit.journal.sample import CASES, FIRST, SECOND, file_of, two_turns

Output = pytest.CaptureFixture[str]
STATES = {"good-two-turns": 0, "empty": 0, "torn-40-bytes": 1, "open-question": 1, "fused-records": 65, "seq-gap": 65}


@pytest.mark.parametrize(("name", "status"), STATES.items())
@pytest.mark.parametrize("as_json", [False, True])
def test_the_session_is_checked(tmp_path: Path, capfd: Output, name: str, status: int, as_json: bool) -> None:
    home = make_home(tmp_path, name)
    assert verify(home, (), as_json=as_json) == status
    out, err = capfd.readouterr()
    assert err == ""
    if as_json:
        [report] = judge(out, "report.v1")
        assert report["file"] == str(session_of(home)) and report["session_id"] == FIRST
        assert report["state"] == {0: "clean", 1: "recoverable", 65: "invalid"}[status]
        assert report["bytes"] == (CASES / f"{name}.jsonl").stat().st_size
    else:
        *findings, summary = out.splitlines()
        assert len(findings) == (status > 0)
        assert all(re.fullmatch(r".*\.jsonl:\d+: [a-z-]+: .* \(byte \d+\)", finding) for finding in findings)
        assert summary.startswith(f"{session_of(home)}: ")
    assert os.listdir(home.path) == ["sessions"] and os.listdir(home.sessions) == [f"{FIRST}.jsonl"]


def test_the_words_of_a_report(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, "failed-and-cancelled")
    verify(home, (), as_json=False)
    path = session_of(home)
    assert capfd.readouterr().out == f"{path}: clean: 10 records, 4 turns (2 completed, 1 failed, 1 cancelled)\n"
    path.write_bytes(b"\n" * 3)
    verify(home, (), as_json=False)
    assert capfd.readouterr().out.splitlines() == [
        f"{path}:1: bad-json: found an empty line, expected a record (byte 0)",
        f"{path}:2: bad-json: found an empty line, expected a record (byte 1)",
        f"{path}:3: tail-syntax: found an empty line, expected a record (byte 2)",
        f"{path}: invalid: 0 records, 0 turns",
    ]
    path.write_bytes(b"\n" * 20_000)
    verify(home, (), as_json=False)
    assert capfd.readouterr().out.splitlines()[-2] == f"{path}: 10000 more findings not listed"


def test_before_the_first_conversation_there_is_nothing_to_check(tmp_path: Path, capfd: Output) -> None:
    assert verify(Home(str(tmp_path / "missing"), False), (), as_json=True) == 0
    assert capfd.readouterr() == ("", "mino: there is no conversation yet\n")


def test_more_than_one_conversation_is_told(tmp_path: Path) -> None:
    home = make_home(tmp_path, "empty")
    write(Path(home.sessions, f"{SECOND}.jsonl"), b"")
    with pytest.raises(InvalidData, match="more than one"):
        verify(home, (), as_json=False)


def test_of_several_files_the_worst_decides(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path / "home")
    files = {name: str(write(tmp_path / "文件" / f"{name}.jsonl", name)) for name in STATES}
    missing, folder = str(tmp_path / "missing"), str(tmp_path)
    clean, torn, bad = files["good-two-turns"], files["torn-40-bytes"], files["seq-gap"]
    for names, status in (
        ((clean,), 0),
        ((clean, torn), 1),
        ((torn, folder, clean), 74),
        ((folder, missing, torn), 66),
        ((missing, bad, clean), 65),
    ):
        assert verify(home, names, as_json=True) == status
        out, err = capfd.readouterr()
        assert [report["file"] for report in judge(out, "report.v1")] == [
            name for name in names if name not in (missing, folder)
        ]
        assert err.count("mino: ") == len({missing, folder}.intersection(names))
    assert os.listdir(home.path) == ["sessions"]


@pytest.mark.parametrize("separator", [b"\0", b"\n"])
def test_names_come_from_standard_input(
    tmp_path: Path, capfd: Output, monkeypatch: pytest.MonkeyPatch, separator: bytes
) -> None:
    first = write(tmp_path / ("a\nb" if separator == b"\0" else "a b"), "empty")
    second = write(tmp_path / "第二", "torn-40-bytes")
    data = separator.join([bytes(first), b"", bytes(second), b""])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert verify(make_home(tmp_path / "home"), ("-",), as_json=True) == 1
    assert [report["file"] for report in judge(capfd.readouterr().out, "report.v1")] == [str(first), str(second)]


def test_a_file_name_that_is_not_text_makes_no_traceback(tmp_path: Path, capfd: Output) -> None:
    path = os.fsdecode(bytes(tmp_path) + b"/\xff.jsonl")
    try:
        Path(path).touch()
    except OSError:
        pytest.skip("this file system takes UTF-8 alone")
    assert verify(make_home(tmp_path / "home"), (path, path + "missing"), as_json=False) == 66
    assert capfd.readouterr().out.endswith("?.jsonl: clean: 0 records, 0 turns\n")


def test_a_writer_that_is_writing_is_not_damage_in_the_session_alone(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, "torn-last-newline")
    copy = write(Path(home.sessions, f"{FIRST}-recovery-20261201T100000Z-01234567.jsonl"), "torn-40-bytes")
    saved = write(Path(home.saved, "巴黎.jsonl"), "open-answer")
    with lock_home(home, 0):
        assert verify(home, (), as_json=True) == 0
        assert verify(home, (str(copy),), as_json=True) == 1
        assert verify(home, (str(saved),), as_json=True) == 1
        session_of(home).write_bytes(file_of([*two_turns(), b"x"]))
        assert verify(home, (), as_json=True) == 65
    states = [report["state"] for report in judge(capfd.readouterr().out, "report.v1")]
    assert states == ["in-use", "recoverable", "recoverable", "invalid"]


def test_the_file_of_another_home_is_read_under_its_lock(tmp_path: Path, capfd: Output) -> None:
    mine, other = make_home(tmp_path / "mine"), make_home(tmp_path / "other", "open-question")
    with lock_home(other, 0):
        assert verify(mine, (str(session_of(other)),), as_json=True) == 0
    assert verify(mine, (str(session_of(other)),), as_json=True) == 1
    assert [report["state"] for report in judge(capfd.readouterr().out, "report.v1")] == ["in-use", "recoverable"]


def test_wide_permissions_are_a_notice_on_line_0_and_stay(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, "good-two-turns")
    session_of(home).chmod(0o640)
    os.chmod(home.sessions, 0o750)
    other = write(Path(home.saved, "other.jsonl"), "empty")
    other.chmod(0o666)
    for _ in range(2):
        assert verify(home, (), as_json=True) == 0
        [report] = judge(capfd.readouterr().out, "report.v1")
        assert report["state"] == "clean"
        assert [(f["code"], f["line"], f["byte"]) for f in report["findings"]] == [("wide-permissions", 0, 0)] * 2
        told = " ".join(finding["message"] for finding in report["findings"])
        assert f"'{session_of(home)}' has mode 0640, expected 0600" in told
        assert f"'{home.sessions}' has mode 0750, expected 0700" in told
    assert verify(home, (str(other),), as_json=False) == 0
    assert f"{other}:0: wide-permissions: '{other}' has mode 0666" in capfd.readouterr().out


def test_a_saved_session_is_checked_without_a_look_at_the_others(
    tmp_path: Path, capfd: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`find saved -print0 | mino history verify -` looked at the modes of all files for each of them."""
    home = make_home(tmp_path, "good-two-turns")
    paths = [str(write(Path(home.saved, f"第{number}.jsonl"), "empty")) for number in range(3)]
    os.chmod(paths[1], 0o644)

    def refuse(directory: str) -> None:
        pytest.fail(f"read the directory {directory}")

    monkeypatch.setattr("os.scandir", refuse)
    assert verify(home, paths, as_json=True) == 0
    reports = judge(capfd.readouterr().out, "report.v1")
    assert [len(report["findings"]) for report in reports] == [0, 1, 0]


def test_a_session_that_is_a_link_is_refused_and_another_file_may_be_one(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path / "home")
    elsewhere = write(tmp_path / "elsewhere", "empty")
    session_of(home).symlink_to(elsewhere)
    (tmp_path / "link").symlink_to(elsewhere)
    assert verify(home, (), as_json=False) == 74
    assert "symbolic link" in capfd.readouterr().err
    assert verify(home, (str(tmp_path / "link"),), as_json=False) == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_many_files_are_told_in_their_order(tmp_path: Path, capfd: Output, as_json: bool) -> None:
    paths = []
    for number in range(40):
        paths.append(str(tmp_path / f"{number}.jsonl"))
        if number % 7:  # every seventh is not there
            data = file_of(two_turns())
            Path(paths[-1]).write_bytes(data[:-10] if number == 20 else data.replace(b"{", b"x", number == 30))
    home = Home(str(tmp_path / "home"), is_default=False)
    assert verify(home, paths, as_json=as_json) == 65
    many = capfd.readouterr()
    for path in paths:
        verify(home, [path], as_json=as_json)
    assert capfd.readouterr() == many
    assert many.err.count("does not exist") == 6
