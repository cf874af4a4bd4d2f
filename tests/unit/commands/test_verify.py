"""`history verify`: every finding, the state of each file, the worst as the exit status, and nothing written."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mino.cli import cli
from mino.commands.verify import verify
from mino.errors import InvalidData, MinoError, NotFound, StorageFailed
from mino.home import Home
from mino.journal.findings import State
from mino.sessions.place import set_current
from mino.sessions.reading import IN_USE
from mino.terminal import prompt
from tests.homes import EACH_KIND, case, hold, home_with, judge, open_home, path_in, session_path, write
from tests.unit.journal.sample import FIRST, SECOND, file_of, two_turns

Output = pytest.CaptureFixture[str]
STATES: dict[str, State] = {
    "good-two-turns": "clean",
    "empty": "clean",
    "torn-40-bytes": "recoverable",
    "open-question": "recoverable",
    "fused-records": "invalid",
    "seq-gap": "invalid",
}

Verified = Callable[[Home, Sequence[str]], object]


@pytest.fixture
def status_of(monkeypatch: pytest.MonkeyPatch) -> Verified:
    """The exit status that the command line makes of files in a home."""

    def run(home: Home, files: Sequence[str]) -> object:
        monkeypatch.setenv("MINO_HOME", home.path)
        return cli.main(["history", "verify", "--json", *files], prog_name="mino", standalone_mode=False)

    return run


@pytest.mark.parametrize(("name", "state"), STATES.items())
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("session", EACH_KIND)
def test_the_session_is_checked(
    tmp_path: Path, capfd: Output, status_of: Verified, name: str, state: State, session: str | None, as_json: bool
) -> None:
    home = home_with(tmp_path, session, case(name))
    path, places = path_in(home, session), sorted(os.listdir(home.path))
    assert verify(home, session, (), as_json=as_json) == [state]
    out, err = capfd.readouterr()
    hints = {
        "clean": "",
        "recoverable": "hint: mino history recover '",
        "invalid": "hint: mino history recover --salvage ",
    }
    assert err.startswith(hints[state]) and err.count("\n") == (state != "clean")
    if as_json:
        [report] = judge(out, "report.v1")
        assert report["file"] == str(path) and report["session_id"] == (None if session else FIRST)
        assert report["state"] == state
        assert report["bytes"] == len(case(name))
        chosen = ("--session", session) if session else ()
        assert status_of(home, chosen) == {"clean": 0, "recoverable": 1, "invalid": 65}[state]
    else:
        *findings, summary = out.splitlines()
        assert len(findings) == (state != "clean")
        assert all(re.fullmatch(r".*\.jsonl:\d+: [a-z-]+: .* \(byte \d+\)", finding) for finding in findings)
        assert summary.startswith(f"{path}: ")
    assert sorted(os.listdir(home.path)) == places and os.listdir(path.parent) == [path.name]


def test_the_words_of_a_report(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, case("failed-and-cancelled"))
    verify(home, None, (), as_json=False)
    path = session_path(home)
    assert capfd.readouterr().out == f"{path}: clean: 10 records, 4 turns (2 completed, 1 failed, 1 cancelled)\n"
    path.write_bytes(b"\n" * 3)
    verify(home, None, (), as_json=False)
    assert capfd.readouterr().out.splitlines() == [
        f"{path}:1: bad-json: found an empty line, expected a record (byte 0)",
        f"{path}:2: bad-json: found an empty line, expected a record (byte 1)",
        f"{path}:3: tail-syntax: found an empty line, expected a record (byte 2)",
        f"{path}: invalid: 0 records, 0 turns",
    ]
    path.write_bytes(b"\n" * 20_000)
    verify(home, None, (), as_json=False)
    assert capfd.readouterr().out.splitlines()[-2] == f"{path}: 10000 more findings not listed"


def test_before_the_first_conversation_there_is_nothing_to_check(
    tmp_path: Path, capfd: Output, status_of: Verified
) -> None:
    assert verify(Home(str(tmp_path / "missing"), False), None, (), as_json=True) == []
    assert capfd.readouterr() == ("", "mino: there is no conversation yet\n")
    assert status_of(Home(str(tmp_path / "missing"), False), ()) == 0


def test_more_than_one_conversation_is_told(tmp_path: Path) -> None:
    home = open_home(tmp_path, b"")
    write(Path(home.sessions, f"{SECOND}.jsonl"), b"")
    with pytest.raises(InvalidData, match="more than one"):
        verify(home, None, (), as_json=False)


def test_of_several_files_the_worst_decides(tmp_path: Path, capfd: Output, status_of: Verified) -> None:
    home = open_home(tmp_path / "home")
    files = {name: str(write(tmp_path / "文件" / f"{name}.jsonl", case(name))) for name in STATES}
    missing, folder = str(tmp_path / "missing"), str(tmp_path)
    clean, torn, bad = files["good-two-turns"], files["torn-40-bytes"], files["seq-gap"]
    for names, status in (
        ((clean,), 0),
        ((clean, torn), 1),
        ((torn, folder, clean), 74),
        ((folder, missing, torn), 66),
        ((missing, bad, clean), 65),
    ):
        assert status_of(home, names) == status
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
    first = write(tmp_path / ("a\nb" if separator == b"\0" else "a b"), b"")
    second = write(tmp_path / "第二", case("torn-40-bytes"))
    names = write(tmp_path / "names", separator.join([bytes(first), b"", bytes(second), b""]))
    with names.open("rb") as stdin:
        monkeypatch.setattr(prompt, "STDIN", stdin.fileno())
        assert verify(open_home(tmp_path / "home"), None, ("-",), as_json=True) == ["clean", "recoverable"]
    assert [report["file"] for report in judge(capfd.readouterr().out, "report.v1")] == [str(first), str(second)]


def test_a_file_name_that_is_not_text_makes_no_traceback(tmp_path: Path, capfd: Output) -> None:
    path = os.fsdecode(bytes(tmp_path) + b"/\xff.jsonl")
    try:
        Path(path).touch()
    except OSError:
        pytest.skip("this file system takes UTF-8 alone")
    clean, missing = verify(open_home(tmp_path / "home"), None, (path, path + "missing"), as_json=False)
    assert clean == "clean" and isinstance(missing, NotFound) and missing.status == 66
    assert capfd.readouterr().out.endswith("?.jsonl: clean: 0 records, 0 turns\n2 files: 1 clean, 1 not read\n")


def test_a_session_that_a_writer_holds_is_in_use_and_that_is_told(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, case("torn-last-newline"), 巴黎=case("open-answer"))
    paths = [path_in(home, name) for name in (None, "巴黎")]
    for held, states in ((None, ["in-use", "recoverable"]), ("巴黎", ["recoverable", "in-use"])):
        with hold(home, held):
            assert verify(home, None, list(map(str, paths)), as_json=True) == states
        out, err = capfd.readouterr()
        assert [report["state"] for report in judge(out, "report.v1")] == states
        free = paths[states.index("recoverable")]
        assert sorted(err.splitlines()) == [f"hint: mino history recover '{free}'", f"mino: {IN_USE}"]


def test_the_current_conversation_is_checked(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, case("good-two-turns"), 巴黎=case("torn-40-bytes"))
    set_current(home, "巴黎")
    assert verify(home, None, (), as_json=True) == ["recoverable"]
    [report] = judge(capfd.readouterr().out, "report.v1")
    assert report["file"] == str(path_in(home, "巴黎"))
    path_in(home, "巴黎").unlink()
    with pytest.raises(NotFound, match="the current conversation '巴黎' is not there"):
        verify(home, None, (), as_json=True)


def test_wide_permissions_are_printed_as_a_notice_on_line_0(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, case("good-two-turns"))
    session_path(home).chmod(0o640)
    os.chmod(home.sessions, 0o750)
    other = write(Path(home.saved, "其他.jsonl"), b"")
    other.chmod(0o666)
    assert verify(home, None, (), as_json=True) == ["clean"]
    [report] = judge(capfd.readouterr().out, "report.v1")
    assert report["state"] == "clean"
    assert [(f["code"], f["line"], f["byte"]) for f in report["findings"]] == [("wide-permissions", 0, 0)] * 2
    assert verify(home, None, (str(other),), as_json=False) == ["clean"]
    assert f"{other}:0: wide-permissions: '{other}' has mode 0666" in capfd.readouterr().out


def test_a_session_that_is_a_link_is_refused_and_another_file_may_be_one(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path / "home")
    elsewhere = write(tmp_path / "elsewhere", b"")
    session_path(home).symlink_to(elsewhere)
    (tmp_path / "link").symlink_to(elsewhere)
    [refused] = verify(home, None, (), as_json=False)
    assert isinstance(refused, StorageFailed)
    assert "symbolic link" in capfd.readouterr().err
    assert verify(home, None, (str(tmp_path / "link"),), as_json=False) == ["clean"]


@pytest.mark.parametrize("as_json", [False, True])
def test_many_files_are_told_in_their_order(tmp_path: Path, capfd: Output, as_json: bool) -> None:
    paths = []
    for number in range(40):
        paths.append(str(tmp_path / f"{number}.jsonl"))
        if number % 7:  # every seventh is not there
            data = file_of(two_turns())
            Path(paths[-1]).write_bytes(data[:-10] if number == 20 else data.replace(b"{", b"x", number == 30))
    home = Home(str(tmp_path / "home"), is_default=False)
    states = verify(home, None, paths, as_json=as_json)
    missing = [state for state in states if isinstance(state, MinoError)]
    assert states[0::7] == missing and {type(each) for each in missing} == {NotFound}
    assert states.pop(30) == "invalid" and states.pop(20) == "recoverable"
    assert states.count("clean") == 40 - len(missing) - 2
    out, err = capfd.readouterr()
    if not as_json:
        out, last = re.fullmatch(r"(.*\n)(.*)\n", out, re.DOTALL).groups()  # type: ignore[union-attr]
        assert last == "40 files: 32 clean, 1 recoverable, 1 invalid, 6 not read"
    for path in paths:
        verify(home, None, [path], as_json=as_json)
    assert capfd.readouterr() == (out, err)
    assert err.count("does not exist") == 6


@pytest.mark.parametrize("number", [3, 20])
def test_quiet_prints_findings_and_what_is_not_clean(tmp_path: Path, capfd: Output, number: int) -> None:
    home = open_home(tmp_path / "home")
    clean = [str(write(tmp_path / f"{n}.jsonl", case("good-two-turns"))) for n in range(number)]
    torn, bad = (str(write(tmp_path / f"{name}.jsonl", case(name))) for name in ("torn-40-bytes", "seq-gap"))
    for as_json in (False, True):
        assert verify(home, None, clean, as_json=as_json, quiet=True) == ["clean"] * number
        assert capfd.readouterr() == ("", "")
        verify(home, None, [torn, bad], as_json=as_json)
        both = [line for line in capfd.readouterr().out.splitlines() if line != "2 files: 1 recoverable, 1 invalid"]
        verify(home, None, [*clean, torn, bad], as_json=as_json, quiet=True)
        assert capfd.readouterr().out.splitlines() == both
    wide = write(Path(home.saved, "其他.jsonl"), b"")
    wide.chmod(0o666)
    verify(home, None, [str(wide), *clean], as_json=False, quiet=True)
    assert capfd.readouterr().out == f"{wide}:0: wide-permissions: '{wide}' has mode 0666, expected 0600 (byte 0)\n"
    verify(home, None, [str(wide), *clean], as_json=True, quiet=True)
    assert len(judge(capfd.readouterr().out, "report.v1")) == 1
