"""`history show` and `export` of a file that a person names, of standard input, and what a salvage would keep."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mino.journal.record import encode, turn_end, user_message
from mino.text import shell_word
from tests.homes import completed, judge, make_home, numbered, obeys_modes, save, write
from tests.system.program import Program, read_until
from tests.system.test_hints import paste

PAIRS = (("我喜欢什么颜色？", "蓝色。🔵"), ("second\nquestion", "second answer\n"), ("third", "答"))
GOOD = completed(*PAIRS)
LINES = GOOD.splitlines(keepends=True)
DAMAGED = b"".join([*LINES[:3], LINES[3][:20], b"\0\n", *LINES[4:]])  # the second question is unreadable
OPEN = GOOD + encode(user_message(10, "a" * 32, "没有答案？"))
MEMORY = [sys.executable, "-c", "import os, resource as r, sys; r.setrlimit(r.RLIMIT_AS, (300_000_000, 300_000_000)); "]
MEMORY[-1] += "os.execvp(sys.argv[1], sys.argv[1:])"
READERS = [
    ("show",),
    ("show", "--json"),
    ("show", "--salvage"),
    ("show", "--context"),
    ("export",),
    ("export", "--format", "messages"),
]


def outside(mino: Program, content: bytes, name: str = "会话 1.jsonl") -> str:
    """A file of that content beside an empty home."""
    make_home(mino.home, None)
    return str(write(mino.home.parent / name, content))


@pytest.mark.parametrize("words", [*READERS, ("show", "-n", "1"), ("show", "--turn", "2"), ("export", "--turn", "2")])
def test_a_file_is_read_as_the_conversation_itself(mino: Program, tmp_path: Path, words: tuple[str, ...]) -> None:
    make_home(mino.home, GOOD)
    own = mino.run("history", *words)
    assert own.status == 0 and own.raw_out and (own.err == "" or "--context" in words)
    file = write(tmp_path / "a copy.jsonl", GOOD)
    (tmp_path / "link").symlink_to(mino.session)
    os.mkfifo(tmp_path / "fifo")
    threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(GOOD,), daemon=True).start()
    for name in (str(mino.session), str(file), str(tmp_path / "link"), str(tmp_path / "fifo")):
        assert mino.run("history", *words, name) == own, name
    assert mino.run("history", *words, "-", stdin=GOOD) == own
    assert mino.run("history", *words, "/dev/stdin", stdin=GOOD) == own
    with file.open("rb") as stream:
        assert mino.run("history", *words, "-", stdin=stream) == own


def test_nothing_is_made_or_changed(mino: Program) -> None:
    for content in (GOOD, OPEN, DAMAGED, GOOD[:-5], b"", b"note\n"):
        path = Path(write(mino.home.parent / "f.jsonl", content))
        for words in READERS:
            mino.run("history", *words, str(path))
        assert path.read_bytes() == content
        assert not mino.home.exists() and list(path.parent.glob("*.jsonl")) == [path]


def test_an_invalid_file_is_shown_up_to_the_first_bad_record(mino: Program, tmp_path: Path) -> None:
    file = outside(mino, DAMAGED)
    shown = mino.run("history", "show", file)
    assert shown.status == 65 and PAIRS[0][0] in shown.out and PAIRS[2][0] not in shown.out
    assert f"mino: '{file}' line 4 (byte {len(b''.join(LINES[:3]))}): bad-json: " in shown.err
    exported = mino.run("history", "export", file)
    assert (exported.status, exported.out, exported.err) == (65, "", shown.err)
    kept = paste(shown, tmp_path)
    assert kept.status == 65 and PAIRS[0][0] in kept.out and PAIRS[2][0] in kept.out and "second" not in kept.out
    assert paste(kept, tmp_path).status == 0  # `recover --salvage` keeps what was shown
    assert mino.run("history", "show", file).out == kept.out
    for words in READERS:
        piped = mino.run("history", *words, "-", stdin=DAMAGED)
        assert piped.status == 65 and "'-' line 4" in piped.err and "hint: " not in piped.err


def test_a_salvage_is_shown_as_recover_makes_it(mino: Program) -> None:
    file = outside(mino, DAMAGED)
    rehearsed = mino.run("history", "recover", "--salvage", "--dry-run", file).out.splitlines()
    shown = mino.run("history", "show", "--salvage", "--json", file)
    assert [f"mino: {line}" for line in rehearsed] == shown.err.splitlines()[: len(rehearsed)]
    assert f"mino: {file}:4-6: dropped: " in shown.err
    last = mino.run("history", "show", "--salvage", "--json", "-n", "1", file)
    one = mino.run("history", "show", "--salvage", "--json", "--turn", "2", file)
    context = mino.run("history", "show", "--salvage", "--context", file)
    assert {last.status, one.status, context.status} == {65}
    assert mino.run("history", "recover", "--salvage", file).status == 0
    whole = mino.run("history", "show", "--json", file)
    assert (whole.status, whole.out) == (0, shown.out)
    assert last.out == one.out == mino.run("history", "show", "--json", "-n", "1", file).out
    ordinary = mino.run("history", "show", "--context", file)
    assert context.out == ordinary.out
    assert context.err.startswith(ordinary.err) and "left out" not in ordinary.err  # it said -1 turns
    assert [turn["user"] for turn in judge(whole.out, "turn.v1")] == ["我喜欢什么颜色？", "third"]


def test_a_salvage_that_keeps_every_turn_is_no_failure(mino: Program) -> None:
    file = outside(mino, b"".join([*LINES[:3], *LINES[6:]]))  # a gap in seq
    assert mino.run("history", "show", file).status == 65
    shown = mino.run("history", "show", "--salvage", file)
    assert shown.status == 0 and "third" in shown.out
    assert "bad-seq" in shown.err and shown.err.endswith(f"hint: mino history recover --salvage '{file}'\n")


@pytest.mark.parametrize("content", [OPEN, GOOD[:-20], OPEN + b'{"v":1'])
def test_a_recoverable_file_is_shown_whole(mino: Program, tmp_path: Path, content: bytes) -> None:
    file = outside(mino, content)
    shown = mino.run("history", "show", file)
    last = json.loads(mino.run("history", "show", "--json", "-n", "1", file).out)
    assert shown.status == 0 and last["status"] == "open" and "the next question" not in shown.err
    assert shown.err.endswith(f"hint: mino history recover '{file}'\n")
    exported = mino.run("history", "export", "--format", "text", file)
    assert exported.status == 0 and "left out: 1 open" in exported.err and "没有答案" not in exported.out
    assert "hint: " not in mino.run("history", "show", "-", stdin=content).err
    salvaged = mino.run("history", "show", "--salvage", "--json", file)
    assert paste(shown, tmp_path).status == 0
    recovered = mino.run("history", "show", "--json", file)
    assert recovered.status == salvaged.status == 0
    for before, after in zip(judge(salvaged.out, "turn.v1"), judge(recovered.out, "turn.v1"), strict=True):
        assert before | {"lines": after["lines"]} == after
    assert after["status"] == "interrupted"


def test_a_recovery_copy_is_read_by_the_hint_that_names_it(mino: Program, tmp_path: Path) -> None:
    make_home(mino.home, OPEN + b'{"torn')
    recovered = mino.run("history", "recover")
    [copy] = mino.copies
    assert recovered.err == f"hint: mino history show '{copy}'\n"
    shown = paste(recovered, tmp_path)
    assert shown.status == 0 and "没有答案" in shown.out and "torn-tail" in shown.err
    assert copy.read_bytes() == OPEN + b'{"torn'


@pytest.mark.parametrize("words", READERS)
def test_what_is_no_conversation_is_refused(mino: Program, words: tuple[str, ...]) -> None:
    messages = b'[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]'
    for content in (
        messages,
        b"-----BEGIN KEY-----\n",
        "笔记".encode(),
        bytes(range(256)) * 900,
        b"\0" * 300_000,
        b"\n\n",
    ):
        file = outside(mino, content, "it's.jsonl") if not mino.home.exists() else str(mino.home.parent / "it's.jsonl")
        Path(file).write_bytes(content)
        refused = mino.run("history", *words, file)
        hint = f"hint: mino session import NAME {shell_word(file)} --from messages\n"
        message = f"mino: '{file}' is not a conversation of Mino's: no line of it is a record"
        assert (refused.status, refused.out) == (65, "")
        assert refused.err == f"{message}\n{hint if content == messages else ''}"
        assert mino.run("history", "recover", file).err.startswith(message)
        piped = mino.run("history", *words, "-", stdin=content)
        assert (piped.status, piped.out, piped.err) == (65, "", message.replace(file, "-") + "\n")


@pytest.mark.parametrize("before", [b"x\n", b"\0\n" * 10, b"note\n" * 60_000, b"x" * 400_000 + b"\n"])
def test_one_record_makes_it_a_damaged_conversation(mino: Program, before: bytes) -> None:
    shown = mino.run("history", "show", "-", stdin=before + GOOD)
    assert (shown.status, shown.out) == (65, "") and "'-' line 1 (byte 0): bad-json" in shown.err
    salvaged = mino.run("history", "show", "--salvage", "-", stdin=before + GOOD)
    assert salvaged.status == 65 and "third" in salvaged.out


def test_where_no_turn_can_be_kept_a_new_conversation_is_the_way_out(mino: Program, tmp_path: Path) -> None:
    make_home(mino.home, b"{]\n" * 3)
    shown = paste(mino.run("--home", str(mino.home), "history", "show"), tmp_path)
    assert (shown.status, shown.out) == (65, "") and "no turn of" in shown.err
    assert paste(shown, tmp_path).status == 0
    elsewhere = write(tmp_path / "f.jsonl", LINES[0] + b"{]\n" + LINES[0])
    refused = mino.run("history", "show", "--salvage", str(elsewhere))
    assert (refused.status, refused.out) == (65, "") and "no turn of" in refused.err and "hint: " not in refused.err


def test_a_newer_mino_is_called_newer(mino: Program) -> None:
    newer = GOOD.replace(b'"v":1', b'"v":2')
    for words in READERS:
        file = outside(mino, newer, "n.jsonl") if not mino.home.exists() else str(mino.home.parent / "n.jsonl")
        refused = mino.run("history", *words, file)
        assert (refused.status, refused.out) == (65, "") and "unknown-version" in refused.err
        assert f"hint: update Mino, or mend the line by hand: sed -n 1p '{file}'" in refused.err
        assert "hint: " not in mino.run("history", *words, "-", stdin=newer).err


def test_an_empty_file(mino: Program) -> None:
    file = outside(mino, b"")
    for name, subject in ((file, f"'{file}'"), ("-", "standard input")):
        for words in (("show",), ("show", "--json"), ("show", "--salvage"), ("export",)):
            ended = mino.run("history", *words, name)
            assert (ended.status, ended.out, ended.err) == (0, "", f"mino: {subject} is empty\n")
        assert mino.run("history", "export", "--format", "messages", name).out == "[]\n"
        assert mino.run("history", "show", "--turn", "1", name).status == 66
    own = str(write(mino.home / "sessions" / f"{'a' * 32}.jsonl", b""))
    assert mino.run("history", "show", own) == mino.run("history", "show")


def test_a_turn_that_is_not_there(mino: Program) -> None:
    file = outside(mino, OPEN)
    for words, why in (
        (("show", "--turn", "9"), "there is no turn '9'"),
        (("export", "--turn", "4"), "turn 4 is open"),
    ):
        missing = mino.run("history", *words, file)
        assert (missing.status, missing.out) == (66, "") and why in missing.err
        assert missing.err.splitlines()[-1].startswith("hint: mino history show ") and f"'{file}'" in missing.err
        assert "hint: " not in mino.run("history", *words, "-", stdin=OPEN).err


@pytest.mark.parametrize("words", READERS)
@pytest.mark.parametrize(
    ("name", "status"), [("missing", 66), ("loop", 74), ("folder", 74), ("/dev/zero", 74), ("/dev/null", 74), ("", 66)]
)
def test_what_cannot_be_read(mino: Program, tmp_path: Path, words: tuple[str, ...], name: str, status: int) -> None:
    make_home(mino.home, GOOD)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    path = str(tmp_path / name) if name else ""
    ended = mino.run("history", *words, path)
    assert (ended.status, ended.out) == (status, "") and f"'{path}'" in ended.err


@pytest.mark.skipif(not obeys_modes(), reason="this user may read every file")
def test_a_file_without_permission(mino: Program) -> None:
    file = outside(mino, GOOD)
    os.chmod(file, 0)
    for words in READERS:
        assert mino.run("history", *words, file).status == 77


def test_session_and_file_exclude_each_other(mino: Program) -> None:
    file = outside(mino, GOOD)
    for words in (("show",), ("export",)):
        for name in (file, "-"):
            refused = mino.run("--session", "a", "history", *words, name)
            assert (refused.status, refused.out) == (2, "")
        assert mino.run("history", *words, file, env={"MINO_SESSION": "没有"}).status == 0


@pytest.mark.parametrize("named", [False, True])
def test_a_file_of_a_home_is_tolerated_while_a_writer_has_it(mino: Program, tmp_path: Path, named: bool) -> None:
    """Its unfinished end is no damage; in a copy of it, which nobody writes, it is."""
    home = make_home(mino.home, None if named else OPEN)
    file = save(home, "计划", OPEN) if named else mino.session
    lock = home / "saved" / "计划.lock" if named else home / "sessions.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", f"from mino.journal.lock import lock_exclusive as l; x = l({str(lock)!r}, 0); "
         "print(1, flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        read_until(holder.stdout, b"1")
        (tmp_path / "link").symlink_to(file)
        other = Program(tmp_path / "other", mino.environ | {"MINO_HOME": str(tmp_path / "other")})
        for reader in (mino, other):
            for path in (file, tmp_path / "link"):
                for words in (("show",), ("show", "--salvage")):
                    shown = reader.run("history", *words, "--json", "-n", "1", str(path))
                    assert (shown.status, shown.json["status"]) == (0, "in-progress")
                    assert shown.err == (
                        "mino: the session is in use by another process; its unfinished end is not reported as damage\n"
                    )
                assert reader.run("history", "verify", str(path)).status == 0
        copy = write(tmp_path / file.name, OPEN)
        assert mino.run("history", "show", "--json", "-n", "1", str(copy)).json["status"] == "open"
    finally:
        holder.communicate(b"\n")


def test_every_cut_of_a_conversation_is_read(mino: Program) -> None:
    """No cut may raise a traceback or hide a turn that ended before it."""
    ends = [sum(map(len, LINES[: 3 * turns])) for turns in range(4)]
    for size in (*range(0, len(GOOD), 97), *(end + step for end in ends for step in (-1, 0, 1) if end + step >= 0)):
        ended = mino.run("history", "export", "--format", "messages", "-", stdin=GOOD[:size])
        whole = max(turns for turns, end in enumerate(ends) if end <= size)
        is_conversation = size == 0 or size >= len(LINES[0])
        assert ended.status == (0 if is_conversation else 65), (size, ended.err)
        assert len(ended.json if is_conversation else []) == 2 * whole


@pytest.mark.parametrize("words", [("show", "-n", "1"), ("show", "--salvage", "-n", "1"), ("export", "-n", "1")])
@pytest.mark.parametrize("end", [b"", b"\n" + GOOD])
def test_hundred_megabytes_of_zeros_are_not_held(mino: Program, words: tuple[str, ...], end: bytes) -> None:
    file = Path(outside(mino, GOOD))
    with file.open("r+b") as stream:
        stream.seek(400_000_000)
        stream.write(b"\0" + end)
    with file.open("rb") as stream:
        for name in (str(file), "-"):
            ended = mino.run("history", *words, name, prefix=MEMORY, stdin=stream)
            assert ended.status == (65 if end else 0), ended.err
            assert ("third" in ended.out) == (not end or words[0] == "show")
    with file.open("r+b") as stream:  # and where nothing else is there
        stream.write(b"\0" * len(GOOD))
    assert "is not a conversation" in mino.run("history", *words, str(file), prefix=MEMORY).err or end


def test_the_last_turn_of_a_long_file_needs_little_memory(mino: Program) -> None:
    file = Path(outside(mino, b""))
    with file.open("wb") as stream:
        for number in range(400):  # 400 MB of questions that were not answered
            seq = 2 * number + 1
            stream.write(encode(user_message(seq, f"{number:032x}", "问" * 333_333)))
            stream.write(encode(turn_end(seq + 1, f"{number:032x}", "failed")))
    ended = mino.run("history", "show", "-n", "1", "--json", str(file), prefix=MEMORY)
    assert ended.status == 0 and ended.json["number"] == 400


def test_a_file_that_grows_while_it_is_read(mino: Program) -> None:
    file = Path(outside(mino, GOOD))
    done = threading.Event()

    def grow() -> None:
        content = GOOD
        while not done.is_set():
            more = numbered(content, completed((f"q{len(content)}", "a")))[len(content) :]
            content += more
            for piece in (more[:50], more[50:]):
                with file.open("ab") as stream:
                    stream.write(piece)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(6):
            shown = mino.run("history", "show", "--json", str(file))
            turns = [json.loads(line) for line in shown.out.splitlines()]
            assert shown.status == 0 and len(turns) >= 3
            assert [turn["number"] for turn in turns] == list(range(1, len(turns) + 1))
    finally:
        done.set()
        writer.join()


def test_a_pipe_that_stays_open_can_be_left(mino: Program) -> None:
    make_home(mino.home, None)
    process = mino.start("history", "show", "-", stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(GOOD[:-1])
    process.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == -signal.SIGINT
    out, err = process.communicate()
    assert out == b"" and b"Traceback" not in err
