"""Reading a session while another process writes it, the turn that a person names, and what `verify` finds."""

import os
from pathlib import Path

import pytest

from mino.errors import AccessRefused, InvalidData, MinoError, NotFound, StorageFailed, UsageMistake
from mino.home import Home
from mino.journal.findings import Report
from mino.journal.lock import lock_exclusive, lock_shared
from mino.sessions.place import Place
from mino.sessions.reading import (
    IN_USE,
    check,
    format_some,
    is_id_part,
    open_for_reading,
    pick,
    read_session,
    shown_status,
    tell_state,
)
from tests.homes import (
    EACH_KIND,
    NAMED,
    case,
    copy_path,
    hold,
    home_with,
    obeys_modes,
    open_home,
    path_in,
    refuse_telling,
    session_path,
    write,
)
from tests.unit.journal.sample import FIRST, SECOND, THIRD, file_of, load, question, turn, two_turns


def report_on(home: Home, path: Path) -> Report:
    """What `check` finds in the file at `path`; every byte of it is counted as read."""
    sizes: list[int] = []
    report = check(home, str(path), sizes.append)
    assert sum(sizes) == report.bytes == path.stat().st_size
    return report


@pytest.mark.parametrize(
    ("keep", "kept"), [(None, [FIRST, SECOND, THIRD]), (2, [SECOND, THIRD]), (0, []), (9, [FIRST, SECOND, THIRD])]
)
def test_the_last_completed_turns(tmp_path: Path, keep: int | None, kept: list[str]) -> None:
    failed = [question(10, "f" * 32)]
    home = open_home(tmp_path, file_of([*two_turns(), *turn(7, THIRD), *failed]))
    reading = read_session(home, None, refuse_telling, keep, completed=True)
    assert reading and [each.turn_id for each in reading.turns] == kept
    assert reading.report.turns.total() == 4


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_session_that_is_a_link_is_not_read(tmp_path: Path, name: str | None) -> None:
    home = home_with(tmp_path / "home", name, b"")
    path_in(home, name).rename(tmp_path / "elsewhere")
    path_in(home, name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="is a symbolic link"):
        read_session(home, name, refuse_telling)


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_reader_makes_and_changes_nothing(tmp_path: Path, name: str | None) -> None:
    assert read_session(Home(str(tmp_path / "missing"), False), None, refuse_telling) is None
    assert os.listdir(tmp_path) == []
    home = home_with(tmp_path / "mino", name, case("torn-last-newline"))
    path = path_in(home, name)
    path.chmod(0o644)
    before = sorted(os.walk(home.path))
    reading = read_session(home, name, refuse_telling)
    assert reading and reading.path == str(path)
    assert [each.status for each in reading.turns] == ["completed", "open"]
    assert reading.report.state == "recoverable"
    assert path.read_bytes() == case("torn-last-newline") and path.stat().st_mode & 0o777 == 0o644
    assert sorted(os.walk(home.path)) == before


@pytest.mark.parametrize("session", EACH_KIND)
@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("good-two-turns", "in-use"),
        ("open-question", "in-use"),
        ("open-answer", "in-use"),
        ("torn-40-bytes", "in-use"),
        ("torn-last-newline", "in-use"),
        ("blank-last-line", "invalid"),  # a writer writes whole records: this is none that it has not finished
        ("nul-in-the-middle", "invalid"),
        ("wrong-last-line-but-json", "invalid"),
    ],
)
def test_a_reader_takes_what_a_writer_has_not_finished_for_in_progress(
    tmp_path: Path, session: str | None, name: str, state: str
) -> None:
    home = home_with(tmp_path, session, case(name))
    with hold(home, session):
        beside = read_session(home, session, refuse_telling)
    assert beside and beside.report.state == state and beside.report.in_use
    with hold(home, "another"), hold(home, None if session else NAMED):
        after = read_session(home, session, refuse_telling)
    assert after and after.report.state != "in-use" and not after.report.in_use


def test_readers_let_the_lock_go_when_they_have_read(tmp_path: Path) -> None:
    home = open_home(tmp_path, file_of(two_turns()))
    lock_exclusive(home.lock, 0).close()
    read_session(home, None, refuse_telling)
    report_on(home, session_path(home))
    lock_exclusive(home.lock, 0).close()
    with open_for_reading(Place(home, None), str(session_path(home))) as (fd, in_use):
        assert os.read(fd, 1 << 20) == file_of(two_turns()) and not in_use
        other = lock_shared(home.lock)
        assert other  # readers do not keep one another out
        other.close()
    with pytest.raises(NotFound), open_for_reading(Place(home, None), str(tmp_path / "没有")):
        raise AssertionError
    lock_exclusive(home.lock, 0).close()


def test_the_state_of_a_clean_session_is_not_told(tmp_path: Path) -> None:
    report = load(case("good-two-turns"))[1]
    assert report.state == "clean"
    tell_state(str(tmp_path), report, refuse_telling)


def test_what_the_next_question_recovers_is_told() -> None:
    told: list[str] = []
    tell_state("会话.jsonl", load(case("torn-last-newline"))[1], told.append)
    torn, opened = told
    assert torn.startswith("'会话.jsonl' line ") and ": torn-tail: " in torn and ": open-turn: " in opened
    assert all(sentence.endswith("; the next question recovers it") for sentence in told)


def test_that_a_writer_holds_the_session_is_told() -> None:
    report = load(case("torn-last-newline"))[1]
    report.tolerate_writer()
    told: list[str] = []
    tell_state("会话.jsonl", report, told.append)
    assert told == [IN_USE]


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("seq-gap", "bad-seq", "mino history recover --salvage --dry-run '会话.jsonl'"),
        ("newer-version", "unknown-version", "update Mino, or mend the line by hand: sed -n "),
    ],
)
def test_an_invalid_session_is_a_failure_with_the_way_out(name: str, code: str, hint: str) -> None:
    with pytest.raises(InvalidData, match=f"^'会话.jsonl' line .*: {code}: ") as caught:
        tell_state("会话.jsonl", load(case(name))[1], refuse_telling)
    assert caught.value.hint.startswith(hint)


def test_a_turn_is_named_by_its_number_its_id_a_beginning_or_an_end() -> None:
    ids = [FIRST, SECOND, "1" * 32, "20" * 16]
    turns, _ = load(file_of([line for number, each in enumerate(ids) for line in turn(number * 3 + 1, each)]))
    for wanted, number in ((FIRST, 1), (SECOND.upper(), 2), ("1", 1), ("1" * 8, 3), ("4", 4), ("20" * 4, 4)):
        assert pick(turns, wanted).number == number
    failures: list[tuple[str, type[MinoError]]] = [
        *(
            ("0193a", UsageMistake),
            ("5", NotFound),
            ("0", NotFound),  # the beginning of an id, but a person means a number: `forget 0` took the only turn
            ("202", NotFound),
            ("٣", NotFound),
            ("", NotFound),
            ("g", NotFound),
            ("\x1b[2J", NotFound),
        ),
        (FIRST + "0", NotFound),
    ]
    for wanted, failure in failures:
        with pytest.raises(failure) as caught:
            pick(turns, wanted)
        assert "\x1b" not in caught.value.message and caught.value.hint


def test_the_end_of_an_id_tells_turns_of_one_minute_apart() -> None:
    begin = "0193a0b1c2d3700080000000000"
    ids = [begin + end for end in ("abcde", "bbcde", "12345", "00003", "3fa3b")] + ["3fa3b" + "0" * 27, "c" * 32]
    turns, _ = load(file_of([line for number, each in enumerate(ids) for line in turn(number * 3 + 1, each)]))
    for wanted, number in (("abcde", 1), ("ABCDE", 1), ("bbcde", 2), ("00012345", 3), ("3", 3), ("c", 7), (ids[3], 4)):
        assert pick(turns, wanted).number == number
    for wanted, numbers in (
        ("bcde", "1, 2"),
        ("3fa3b", "5, 6"),
        (begin, "1, 2, 3, 4, 5"),
        (begin[:8], "1, 2, 3, 4, 5"),
    ):
        with pytest.raises(UsageMistake) as caught:
            pick(turns, wanted)
        assert caught.value.message == f"'{wanted}' is ambiguous: the ids of turns {numbers} begin or end with it"
    with pytest.raises(NotFound):
        pick(turns, "2345")  # a number


@pytest.mark.parametrize(
    ("wanted", "is_part"),
    [
        ("0193a0b1", True),
        ("0193A0B1", True),
        (FIRST, True),
        ("a", True),
        ("0193", False),
        ("", False),
        ("1234567", False),
    ],
)
def test_a_few_digits_are_no_part_of_an_id(wanted: str, is_part: bool) -> None:
    assert is_id_part(wanted) is is_part


def test_of_many_only_some_are_named() -> None:
    assert format_some(range(3)) == "0, 1, 2"
    assert format_some(range(10)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert format_some(range(11)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"


def test_only_an_open_turn_is_in_progress() -> None:
    completed, opened = load(case("open-question"))[0]
    assert [shown_status(each, in_use) for each in (completed, opened) for in_use in (False, True)] == [
        *("completed", "completed"),
        *("open", "in-progress"),
    ]


def test_a_writer_that_is_writing_is_not_damage_in_the_session_alone(tmp_path: Path) -> None:
    home = open_home(tmp_path, case("torn-last-newline"))
    session = session_path(home)
    copy = write(Path(home.sessions, f"{FIRST}-recovery-20261201T100000Z-01234567.jsonl"), case("torn-40-bytes"))
    saved = write(Path(home.saved, "巴黎.jsonl"), case("open-answer"))
    saved_copy = write(copy_path(home, "巴黎"), case("open-answer"))
    with hold(home, "巴黎"):
        assert [report_on(home, path).state for path in (session, copy, saved, saved_copy)] == [
            *("recoverable", "recoverable", "in-use", "recoverable")
        ]
    with hold(home):
        assert [report_on(home, path).state for path in (session, copy, saved, saved_copy)] == [
            *("in-use", "recoverable", "recoverable", "recoverable")
        ]
        session.write_bytes(file_of([*two_turns(), b"x"]))
        assert report_on(home, session).state == "invalid"


@pytest.mark.parametrize("name", EACH_KIND)
def test_the_file_of_another_home_is_read_under_its_lock(tmp_path: Path, name: str | None) -> None:
    mine, other = open_home(tmp_path / "mine"), home_with(tmp_path / "other", name, case("open-question"))
    with hold(other, name):
        assert report_on(mine, path_in(other, name)).state == "in-use"
    assert report_on(mine, path_in(other, name)).state == "recoverable"


def test_of_the_home_a_session_file_has_the_modes_of_its_folders_too(tmp_path: Path) -> None:
    home = open_home(tmp_path, None, 其他=b"")
    os.chmod(home.saved, 0o755)
    write(copy_path(home, "其他"), b"")
    [finding] = report_on(home, path_in(home, "其他")).findings
    assert finding.message == f"'{home.saved}' has mode 0755, expected 0700"
    assert report_on(home, copy_path(home, "其他")).findings == []


def test_wide_permissions_are_a_notice_on_line_0_and_stay(tmp_path: Path) -> None:
    home = open_home(tmp_path, case("good-two-turns"))
    session = session_path(home)
    session.chmod(0o640)
    os.chmod(home.sessions, 0o750)
    other = write(Path(home.saved, "其他.jsonl"), b"")
    other.chmod(0o666)
    for _ in range(2):
        report = report_on(home, session)
        assert report.state == "clean"
        assert [(f.code, f.line, f.byte) for f in report.findings] == [("wide-permissions", 0, 0)] * 2
        told = " ".join(finding.message for finding in report.findings)
        assert f"'{session}' has mode 0640, expected 0600" in told
        assert f"'{home.sessions}' has mode 0750, expected 0700" in told
    report = report_on(home, other)
    assert report.state == "clean"
    assert {finding.message for finding in report.findings} == {
        f"'{other}' has mode 0666, expected 0600",
        f"'{home.sessions}' has mode 0750, expected 0700",
    }


def test_a_saved_session_is_checked_without_a_look_at_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`find saved -print0 | mino history verify -` looked at the modes of all files for each of them."""
    home = open_home(tmp_path, case("good-two-turns"))
    paths = [write(Path(home.saved, f"第{number}.jsonl"), b"") for number in range(3)]
    paths[1].chmod(0o644)

    def refuse(directory: str) -> None:
        pytest.fail(f"read the directory {directory}")

    monkeypatch.setattr("os.scandir", refuse)
    reports = [report_on(home, path) for path in paths]
    assert [report.state for report in reports] == ["clean"] * 3
    assert [len(report.findings) for report in reports] == [0, 1, 0]


def test_a_session_that_is_a_link_is_not_checked_and_another_file_may_be_one(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    elsewhere = write(tmp_path / "elsewhere", b"")
    session_path(home).symlink_to(elsewhere)
    (tmp_path / "link").symlink_to(elsewhere)
    with pytest.raises(StorageFailed, match="symbolic link"):
        report_on(home, session_path(home))
    assert report_on(home, tmp_path / "link").state == "clean"


def test_a_file_that_cannot_be_checked_is_a_failure_by_its_kind(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    with pytest.raises(NotFound, match="does not exist"):
        report_on(home, tmp_path / "没有")
    with pytest.raises(StorageFailed, match="is neither a regular file nor a pipe"):
        report_on(home, tmp_path)
    if obeys_modes():
        write(tmp_path / "closed", b"").chmod(0)
        with pytest.raises(AccessRefused):
            report_on(home, tmp_path / "closed")


@pytest.mark.parametrize(
    "content", [b"ssh-ed25519 AAAA u@h", b"a\n" * 20_000, b"\0\0", b'{"v":1}\n', question(1, FIRST)]
)
def test_a_file_without_a_record_is_no_session(tmp_path: Path, content: bytes) -> None:
    home = open_home(tmp_path / "home")
    report = report_on(home, write(tmp_path / "keys", content))
    assert [(finding.code, finding.line, finding.byte) for finding in report.findings] == [("not-a-session", 1, 0)]
    assert report.state == "invalid" and not report.turns.total()
    # In a folder of Mino's the same bytes are a damaged session, or one whose first question was never whole.
    assert report_on(home, write(session_path(home), content)).worst.code != "not-a-session"
    assert report_on(home, write(path_in(home, "keys"), content)).worst.code != "not-a-session"
    assert report_on(home, write(Path(home.saved, "keys"), content)).worst.code == "not-a-session"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b'{"v":2,"seq":1,"type":"user_message"}\n', "unknown-version"),
        (b'{"v":1,"seq":1,"type":"note","turn_id":""}\n', "unknown-type"),
        (b"rubbish\n" + file_of([question(1, FIRST)]), "bad-json"),
        (file_of([question(7, FIRST)]), "bad-seq"),
    ],
)
def test_a_damaged_or_newer_session_is_one_wherever_it_lies(tmp_path: Path, content: bytes, code: str) -> None:
    assert report_on(open_home(tmp_path / "home"), write(tmp_path / "copy", content)).worst.code == code
    assert report_on(open_home(tmp_path / "other"), write(tmp_path / "copy", b"")).state == "clean"
