"""A disk that is full at each write: nothing is sent that is not saved, and the next start puts the file right."""

from pathlib import Path

import pytest

from mino.journal.record import encode, user_message
from tests.server import ScriptedServer, completed
from tests.system.prefixes import mounted
from tests.system.program import BOTH, CASES, Program, limited, sent_texts

GOOD = (CASES / "good-two-turns.jsonl").read_bytes()
TORN = (CASES / "torn-last-newline.jsonl").read_bytes()
TEXTS = ["我最喜欢的颜色是蓝色。", "你最喜欢的颜色是蓝色。", "And my dog is called Rex.", "Noted: Rex 🐕."]
QUESTION = len(encode(user_message(7, "0" * 32, "now")))  # bytes


def check_next_start(mino: Program, server: ScriptedServer, context: list[str]) -> None:
    """With room again the next question is asked, the file is clean, and nothing of the failed turn is sent."""
    assert mino.run("ask", "again", server=server).status == 0
    assert sent_texts(server.requests[-1].json) == [*context, "again"]
    _, report = mino.load()
    assert report.state == "clean"
    assert mino.session.read_bytes().startswith(GOOD)


@BOTH
@pytest.mark.parametrize("room", [0, 1, 50, QUESTION - 1])
def test_no_room_for_the_question(mino: Program, server: ScriptedServer, room: int) -> None:
    path = mino.write_session(GOOD)
    failed = mino.run("ask", "now", prefix=limited(len(GOOD) + room))
    assert (failed.status, failed.out) == (74, "")
    assert failed.err.startswith(f"mino: cannot append to '{path}': ") and "the question was not sent" in failed.err
    assert not server.connections and len(path.read_bytes()) == len(GOOD) + room
    check_next_start(mino, server, TEXTS)
    assert len(mino.copies) == bool(room)


@BOTH
@pytest.mark.parametrize("room", [QUESTION, QUESTION + 1, QUESTION + 200, QUESTION + 1400])
def test_no_room_for_the_answer(mino: Program, room: int) -> None:
    path = mino.write_session(GOOD)
    with ScriptedServer(completed("长回答 🗼 " * 40), always=completed("ok")) as server:
        failed = mino.run("ask", "now", server=server, prefix=limited(len(GOOD) + room))
        assert (failed.status, failed.out) == (74, "长回答 🗼 " * 40 + "\n")
        assert f"cannot append to '{path}'" in failed.err
        assert "the answer was shown and may not be saved" in failed.err and "hint: mino history verify" in failed.err
        assert len(path.read_bytes()) == len(GOOD) + room
        check_next_start(mino, server, TEXTS)
    turns, _ = mino.load()
    assert [turn.status for turn in turns[2:]] == ["interrupted", "completed"]


@BOTH
def test_with_json_the_answer_was_not_shown(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(GOOD)
    failed = mino.run("ask", "--json", "now", prefix=limited(len(GOOD) + QUESTION))
    assert (failed.status, failed.out) == (74, "") and ": the answer may not be saved\n" in failed.err


@BOTH
def test_no_room_for_the_end_of_a_failed_turn(mino: Program) -> None:
    mino.write_session(GOOD)
    with ScriptedServer(always=completed("")) as server:
        failed = mino.run("ask", "now", server=server, prefix=limited(len(GOOD) + QUESTION + 10))
    assert failed.status == 74 and "the end of the failed turn may not be saved" in failed.err


@BOTH
@pytest.mark.parametrize("size", [1, len(TORN) - 1])
def test_no_room_for_the_recovery_copy(mino: Program, server: ScriptedServer, size: int) -> None:
    path = mino.write_session(TORN)
    failed = mino.run("ask", "now", prefix=limited(size))
    assert (failed.status, failed.out) == (74, "") and "-recovery-" in failed.err
    assert not server.connections and mino.files() == [path] and path.read_bytes() == TORN
    assert mino.run("history", "recover", prefix=limited(size)).status == 74
    assert mino.files() == [path] and path.read_bytes() == TORN
    assert mino.run("history", "recover").status == 0


# A small tmpfs, gone with the namespace: what is left on it is moved out by the script. $1 is where to, $2 the pages.
SMALL_DISK = """
out=$1 pages=$2; shift 2
mkdir "$MINO_HOME/before"; cp -a "$MINO_HOME/sessions" "$MINO_HOME/before"
mv "$MINO_HOME/before" "$out/before"
mount -t tmpfs -o size=$((pages * 4096)),mode=700 none "$MINO_HOME" || exit 99
cp -a "$out/before/sessions" "$MINO_HOME"
"$@"; status=$?
cp -a "$MINO_HOME/sessions" "$out/after"
exit $status
"""


def on_a_small_disk(mino: Program, data: bytes, pages: int, server: ScriptedServer) -> tuple[int, str, bytes, int]:
    """Ask on a tmpfs of that many pages: the exit status, stderr, the session file and the number of files after."""
    path = mino.write_session(data)
    out = mino.home.parent / "out"
    out.mkdir()
    ended = mino.run("ask", "now", server=server, prefix=mounted(SMALL_DISK, str(out), str(pages)))
    assert ended.status != 99, ended.err
    return ended.status, ended.err, (out / "after" / path.name).read_bytes(), len(list((out / "after").iterdir()))


def padded(size: int) -> bytes:
    """A journal of exactly `size` bytes, one completed turn."""
    first = GOOD[: GOOD.index(b"\n", GOOD.index(b"turn_end")) + 1]
    return first.replace("我".encode(), "我".encode() + b"." * (size - len(first)), 1)


@pytest.mark.parametrize(
    ("size", "written"),
    [(4096, 0), (4096 - 10, 10), (2 * 4096 - QUESTION, QUESTION), (2 * 4096 - QUESTION - 60, QUESTION + 60)],
)
def test_a_small_disk_that_fills_up(mino: Program, server: ScriptedServer, size: int, written: int) -> None:
    data = padded(size)
    # One page for each directory that tmpfs counts none for; the lock takes one, the session the rest.
    status, err, after, files = on_a_small_disk(mino, data, 1 + size // 4096 + bool(size % 4096), server)
    assert status == 74 and "No space left on device" in err
    assert after.startswith(data) and len(after) == size + written and files == 1
    assert server.connections == (written >= QUESTION)


def test_a_small_disk_without_room_for_the_recovery_copy(mino: Program, server: ScriptedServer) -> None:
    data = padded(3 * 4096) + b'{"v":1,"seq":4,"ty'
    status, err, after, files = on_a_small_disk(mino, data, 6, server)
    assert status == 74 and "No space left on device" in err and "-recovery-" in err
    assert (after, files) == (data, 1) and not server.connections


def test_a_disk_that_was_full_from_the_beginning(mino: Program, server: ScriptedServer, tmp_path: Path) -> None:
    mino.home.mkdir()
    script = 'mount -t tmpfs -o size=4096,nr_inodes=1,mode=700 none "$MINO_HOME" && "$@"'
    failed = mino.run("ask", "now", prefix=mounted(script))
    assert (failed.status, failed.out) == (73, "") and "No space left on device" in failed.err
    assert not server.connections


@BOTH
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_an_answer_into_a_full_disk_is_saved_all_the_same(
    mino: Program, server: ScriptedServer, words: list[str]
) -> None:
    with open("/dev/full", "wb") as full:
        failed = mino.run("ask", *words, "q", stdout=full)
    message, hint = failed.err.splitlines()
    assert failed.status == 74 and message == "mino: cannot write to stdout: No space left on device"
    assert mino.types() == ["user_message", "assistant_message", "completed"]
    # The hint is a command that shows the answer.
    program, *show = hint.removeprefix("hint: ").split()
    assert program == "mino" and "巴黎 🗼" in mino.run(*show).out


def test_without_history_a_full_disk_behind_stdout_has_no_hint(mino: Program, server: ScriptedServer) -> None:
    with open("/dev/full", "wb") as full:
        failed = mino.run("ask", "--no-history", "q", stdout=full)
    assert (failed.status, failed.err) == (74, "mino: cannot write to stdout: No space left on device\n")
