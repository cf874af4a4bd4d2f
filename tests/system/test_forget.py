"""`mino history forget`: afterwards the words are in no file of the home, and the other turns are."""

from contextlib import closing
from pathlib import Path

import pytest

from mino.journal.lock import lock_exclusive
from mino.journal.record import encode, user_message
from tests.homes import (
    SESSION,
    completed,
    ended,
    make_home,
    numbered,
    questions,
    save,
    saved_in,
    session_of,
    state_of,
    turns_of,
    write,
)
from tests.system.program import Program, limited

FIRST = completed(("first question", "first answer"))
SECRET = completed(("我的密码是忘记我 🔑", "I will 忘记我."))
LAST = completed(("最后的问题", "最后的回答"))
LIVE = numbered(FIRST, SECRET, LAST)
SECRET_ID = turns_of(SECRET)[0].turn_id
COPY = f"{SESSION.removesuffix('.jsonl')}-recovery-20260101T000000Z-0000000%d.jsonl"


def files_with(home: Path, word: str) -> list[str]:
    """Every file under the home that holds `word`, written as it is or as JSON escapes."""
    forms = (word.encode(), word.encode("unicode_escape"))
    paths = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    return sorted(str(path.relative_to(home)) for path in paths if any(form in path.read_bytes() for form in forms))


def test_the_text_is_gone_from_every_file(mino: Program) -> None:
    question = encode(user_message(10, "c" * 32, "next question"))
    home = make_home(
        mino.home, LIVE, **{"检查点": numbered(SECRET, LAST), "x.~20260101T000000Z~": SECRET, "other": FIRST}
    )
    torn_answer = numbered(FIRST, SECRET)[:-80]
    damaged = SECRET.replace(b'"assistant_message"', b'"assistant_mess\x00') + b"\xff\xff" + question
    for number, content in enumerate((torn_answer, damaged, LIVE + question[:30])):
        write(home / "sessions" / (COPY % number), content)
    save(home, "检查点-recovery-20260101T000000Z-00000000", SECRET + b"{")
    for folder, owner in (("sessions", ""), ("saved", ""), ("saved", "检查点"), ("saved", "gone")):
        write(home / folder / f".mino-0011223344556677-{owner}.tmp", SECRET)  # what a killed writer leaves
    assert len(files_with(home, "忘记我")) == 11

    done = mino.run("history", "forget", "2")

    assert done.status == 0
    assert files_with(home, "忘记我") == []
    assert questions(session_of(home)) == ["first question", "最后的问题"]
    assert questions(saved_in(home)["检查点"]) == ["最后的问题"]
    assert saved_in(home)["x.~20260101T000000Z~"] == b""
    assert saved_in(home)["other"] == FIRST
    assert (home / "sessions" / (COPY % 0)).read_bytes() == FIRST
    assert (home / "sessions" / (COPY % 1)).read_bytes() in (b"", question)
    assert (home / "sessions" / (COPY % 2)).read_bytes() == numbered(FIRST, LAST) + question[:30]
    *copies, session = done.out.splitlines()
    assert session == f"{home}/sessions/{SESSION}:4-6: removed turn 2 {SECRET_ID}"
    assert f"{home}/saved/检查点.jsonl:1-3: removed turn 2 {SECRET_ID}" in copies
    assert len(copies) == 6
    assert mino.run("history", "verify").status == 0


def test_what_recovery_copies_a_moment_before_is_forgotten_too(mino: Program) -> None:
    secret = encode(user_message(4, "a" * 32, "忘记我"))
    home = make_home(mino.home, FIRST + secret + b'{"v":1,"seq":5,"type":"assistant_message","turn_id":"' + b"a" * 32)

    done = mino.run("history", "forget", "--last")

    assert done.status == 0
    assert "recovered the session" in done.err
    assert files_with(home, "忘记我") == []
    assert session_of(home) == FIRST
    assert [copy.read_bytes() for copy in mino.copies] == [FIRST]


@pytest.mark.parametrize(
    "name", ["2", SECRET_ID, SECRET_ID[:-1], SECRET_ID.upper()], ids=["number", "id", "beginning", "upper case"]
)
def test_a_turn_is_named_by_number_or_id(mino: Program, name: str) -> None:
    make_home(mino.home, LIVE)
    assert mino.run("history", "forget", name).status == 0
    assert questions(session_of(mino.home)) == ["first question", "最后的问题"]


def test_several_turns_at_once(mino: Program) -> None:
    make_home(mino.home, LIVE, all=LIVE)
    assert mino.run("history", "forget", "3", "1", "3").status == 0
    assert questions(session_of(mino.home)) == questions(saved_in(mino.home)["all"]) == ["我的密码是忘记我 🔑"]


def test_a_failed_turn(mino: Program) -> None:
    make_home(mino.home, FIRST + ended(4, "f" * 32, "忘记我", "failed"))
    assert mino.run("history", "forget", "--last").status == 0
    assert session_of(mino.home) == FIRST


def test_a_turn_that_is_only_in_a_saved_session_is_named_by_its_id(mino: Program) -> None:
    make_home(mino.home, FIRST, s=numbered(SECRET, LAST))
    done = mino.run("history", "forget", SECRET_ID)
    assert done.out == f"{mino.home}/saved/s.jsonl:1-3: removed turn {SECRET_ID}\n"
    assert files_with(mino.home, "忘记我") == []
    assert session_of(mino.home) == FIRST


def test_what_an_editor_has_open_is_no_file_that_may_hold_a_turn(mino: Program) -> None:
    """Emacs marks a file that it has open by a link to no file; `forget` did its work, and then ended with 74."""
    home = make_home(mino.home, LIVE, x=SECRET)
    for file in (home / "sessions" / f".#{SESSION}", home / "saved" / ".#x.jsonl"):
        file.symlink_to("ann@host.1234:1700000000")
    write(home / "sessions" / f".~lock.{SESSION}", b",ann,host,;")  # a regular file does the same for others
    swap = write(home / "saved" / ".x.jsonl", SECRET)
    done = mino.run("history", "forget", "2")
    assert done.status == 0 and files_with(home, "忘记我") == ["saved/.x.jsonl"]
    assert done.err == f"mino: '{swap}' is not a file of Mino's, and it still names a turn\nhint: rm '{swap}'\n"
    assert len([path for path in home.rglob(".#*") if path.is_symlink()]) == 2


def test_what_an_editor_left_beside_the_session_is_told_and_stays(mino: Program) -> None:
    home = make_home(mino.home, LIVE, s=FIRST)
    backup = write(home / "sessions" / f"{SESSION}~", LIVE)
    write(home / "saved" / "s.jsonl~", FIRST)
    done = mino.run("history", "forget", SECRET_ID)
    assert done.status == 0
    assert done.err == f"mino: '{backup}' is not a file of Mino's, and it still names a turn\nhint: rm '{backup}'\n"
    assert backup.read_bytes() == LIVE


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (["9"], 66, "there is no turn '9'"),
        (["f" * 32], 66, "there is no turn"),
        (["1", "9"], 66, "there is no turn '9'"),
        (["0"], 66, "there is no turn '0'"),
        (["01"], 66, "there is no turn '01'"),
        (["0193a"], 2, "is ambiguous"),
        ([""], 66, "there is no turn"),
        ([], 2, "--last"),
        (["1", "--last"], 2, "--last"),
    ],
)
def test_what_names_no_turn_changes_nothing(mino: Program, words: list[str], status: int, why: str) -> None:
    make_home(mino.home, LIVE, s=SECRET)
    done = mino.run("history", "forget", *words)
    assert done.status == status
    assert why in done.err
    assert (session_of(mino.home), saved_in(mino.home)) == (LIVE, {"s": SECRET})


def test_the_beginning_of_two_turns_elsewhere_is_ambiguous(mino: Program) -> None:
    content = ended(1, "f" * 31 + "1", "q", "failed") + ended(3, "f" * 31 + "2", "q", "failed")
    make_home(mino.home, FIRST, s=content)
    # The last is the beginning of a turn of the session too, and of that alone among its turns.
    for beginning in ("fff", turns_of(FIRST)[0].turn_id[:13]):
        save(mino.home, "other", SECRET)
        done = mino.run("history", "forget", beginning)
        assert (done.status, "is ambiguous: turns " in done.err) == (2, True)
    assert (session_of(mino.home), saved_in(mino.home)) == (FIRST, {"s": content, "other": SECRET})


def test_a_turn_is_named_by_the_end_of_its_id_wherever_it_is(mino: Program) -> None:
    begin = "0193a0b1c2d370008" + "0" * 10
    content = b"".join(ended(2 * n - 1, f"{begin}{'abc'[n - 1]}1234", f"问{n}", "failed") for n in (1, 2, 3))
    make_home(mino.home, FIRST, s=content)
    done = mino.run("history", "forget", "1234f", "1234")
    assert (done.status, saved_in(mino.home)) == (66, {"s": content})  # four digits are a number
    done = mino.run("history", "forget", "0" + begin[-1:] * 6 + "b1234", "--dry-run")
    assert (done.status, done.out.count(f"{begin}b1234")) == (0, 1)
    done = mino.run("history", "forget", begin + "d")
    assert done.status == 66
    done = mino.run("history", "forget", begin)
    assert done.status == 2
    assert f"is ambiguous: turns {begin}a1234, {begin}b1234, {begin}c1234 begin or end with it" in done.err
    assert mino.run("history", "forget", "B1234", "c1234").status == 0
    assert [turn.turn_id for turn in turns_of(saved_in(mino.home)["s"])] == [f"{begin}a1234"]


def test_show_and_export_take_the_end_of_an_id_too(mino: Program) -> None:
    make_home(mino.home, LIVE)
    for turn in turns_of(LIVE):
        end = "00" + turn.turn_id[-6:] if turn.turn_id[-6:].isdecimal() else turn.turn_id[-6:]
        shown = mino.run("history", "show", "--json", "--turn", end)
        assert (shown.status, shown.json["number"]) == (0, turn.number), end
        if turn.status == "completed":
            exported = mino.run("history", "export", "--format", "messages", "--turn", end)
            assert (exported.status, exported.json[0]["content"]) == (0, turn.user)


def test_no_conversation_has_no_last_turn(mino: Program) -> None:
    assert mino.run("history", "forget", "--last").status == 66


def test_dry_run_says_the_same_and_changes_nothing(mino: Program) -> None:
    home = make_home(mino.home, LIVE, s=SECRET)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    tried = mino.run("history", "forget", "2", "--dry-run")
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before
    done = mino.run("history", "forget", "2")
    assert (tried.status, done.status) == (0, 0)
    assert tried.out.replace("would remove", "removed") == done.out
    assert len(done.out.splitlines()) == 2


def test_an_invalid_session_is_refused_unchanged(mino: Program) -> None:
    broken = FIRST + b"{]\n" + numbered(FIRST, SECRET)[len(FIRST) :]
    make_home(mino.home, broken, s=SECRET)
    for words in (["1"], ["1", "--dry-run"]):
        done = mino.run("history", "forget", *words)
        assert (done.status, "--salvage" in done.err) == (65, True)
    assert (session_of(mino.home), saved_in(mino.home)) == (broken, {"s": SECRET})


def test_a_session_in_use(mino: Program) -> None:
    make_home(mino.home, LIVE)
    with closing(lock_exclusive(f"{mino.home}/sessions.lock", 0)):
        assert mino.run("history", "forget", "1").status == 75
        assert mino.run("history", "forget", "1", "--dry-run").status == 0  # it only reads
    assert session_of(mino.home) == LIVE


def test_a_file_that_cannot_be_changed_does_not_keep_the_turn_in_the_others(mino: Program, tmp_path: Path) -> None:
    home = make_home(mino.home, LIVE, s=SECRET)
    outside = write(tmp_path / "outside", SECRET)
    (home / "saved" / "a.jsonl").symlink_to(outside)

    done = mino.run("history", "forget", "2")

    assert done.status == 74
    assert f"may still hold a turn: '{home}/saved/a.jsonl'" in done.err
    assert f"hint: mino history forget {SECRET_ID}" in done.err
    assert files_with(home, "忘记我") == []
    assert outside.read_bytes() == SECRET
    assert len(done.out.splitlines()) == 2


def test_a_full_disk_leaves_each_file_whole(mino: Program) -> None:
    long = completed(("long " * 4000, "answer"))
    home = make_home(mino.home, numbered(long, SECRET), small=numbered(SECRET, FIRST))

    done = mino.run("history", "forget", "2", prefix=limited(9000))

    assert done.status == 74
    assert session_of(home) == numbered(long, SECRET)
    assert saved_in(home) == {"small": FIRST}
    assert state_of(session_of(home)) == "clean"
    assert mino.run("history", "forget", "2").status == 0
    assert files_with(home, "忘记我") == []
