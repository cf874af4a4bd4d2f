"""Two processes and one session: the second one stops or waits, readers do neither, and the file stays whole."""

import json
import threading
from collections.abc import Iterator

import pytest

from tests.server import ScriptedServer, answer_events, completed, events, wait_until
from tests.system.program import CASES, PATIENCE, Ended, Program, finish, load, read_until, sent_texts

GOOD = (CASES / "good-two-turns.jsonl").read_bytes()


class Writer:
    """A process in the middle of its answer; it ends when `let_go` is called."""

    def __init__(self, mino: Program) -> None:
        self._gate = threading.Event()
        *pieces, end = answer_events("first 回答")
        self.server = ScriptedServer(events(*pieces, self._gate, end), always=completed("next"))
        self.process = mino.start("ask", "first", server=self.server)
        read_until(self.process.stdout, "first 回答".encode())

    def let_go(self) -> Ended:
        """Let it finish."""
        self._gate.set()
        return finish(self.process)


@pytest.fixture
def writer(mino: Program) -> Iterator[Writer]:
    """A process that holds the session of `mino`, which has two turns."""
    mino.write_session(GOOD)
    writer = Writer(mino)
    with writer.server:
        yield writer
        if writer.process.returncode is None:
            assert writer.let_go().status == 0


@pytest.mark.parametrize("words", [["ask", "second"], ["history", "recover"], ["session", "new"]])
def test_the_second_writer_stops_and_names_the_first(mino: Program, writer: Writer, words: list[str]) -> None:
    before = mino.session.read_bytes()
    stopped = mino.run(*words, server=writer.server)
    assert (stopped.status, stopped.out) == (75, "")
    assert stopped.err.splitlines()[0] == f"mino: the session is in use by process {writer.process.pid} (mino ask)"
    assert "--wait" in stopped.err
    assert len(writer.server.requests) == 1 and mino.session.read_bytes() == before


def test_the_second_writer_waits_as_long_as_it_is_told(mino: Program, writer: Writer) -> None:
    stopped = mino.run("ask", "--wait", "0.2", "second", server=writer.server)
    assert stopped.status == 75 and "waiting" not in stopped.err
    waiting = mino.start("ask", "--wait", "60", "second", server=writer.server)
    notice = read_until(waiting.stderr, b"\n").decode()  # comes after a second
    assert notice.startswith("mino: waiting up to 60 seconds") and str(writer.process.pid) in notice
    assert writer.let_go().status == 0
    ended = finish(waiting)
    assert (ended.status, ended.out) == (0, "next\n")
    assert sent_texts(writer.server.requests[1].json)[-3:] == ["first", "first 回答", "second"]
    assert mino.load()[1].state == "clean"


def test_readers_read_what_is_there_and_say_that_it_is_in_use(mino: Program, writer: Writer) -> None:
    shown = mino.run("history", "show", "--json")
    turns = [json.loads(line) for line in shown.out.splitlines()]
    assert (shown.status, [turn["status"] for turn in turns]) == (0, ["completed", "completed", "in-progress"])
    assert turns[-1]["user"] == "first" and "in use by another process" in shown.err

    verified = mino.run("history", "verify", "--json")
    assert (verified.status, verified.json["state"], verified.json["findings"]) == (0, "in-use", [])
    assert verified.json["turns"]["open"] == 1

    dry = mino.run("ask", "--dry-run", "now")
    assert sent_texts(dry.json)[::2] == ["我最喜欢的颜色是蓝色。", "And my dog is called Rex.", "now"]
    assert mino.run("history", "recover", "--dry-run").status == 75


def test_damage_stays_damage_while_the_session_is_in_use(mino: Program, writer: Writer) -> None:
    data = mino.session.read_bytes()
    mino.session.write_bytes(data.replace(b'"seq":4', b'"seq":9'))
    verified = mino.run("history", "verify", "--json")
    assert (verified.status, verified.json["state"]) == (65, "invalid")
    mino.session.write_bytes(data)


def test_a_torn_line_is_in_progress_while_the_session_is_in_use(mino: Program, writer: Writer) -> None:
    data = mino.session.read_bytes()
    mino.session.write_bytes(data + b'{"v":1,"seq":8,"ty')
    verified = mino.run("history", "verify", "--json")
    assert (verified.status, verified.json["state"]) == (0, "in-use")
    mino.session.write_bytes(data)


def test_a_writer_that_died_holds_nothing(mino: Program, writer: Writer) -> None:
    writer.process.kill()
    writer.process.communicate()
    assert (mino.home / "sessions.lock").read_text().startswith(str(writer.process.pid))
    assert mino.run("history", "verify").status == 1
    assert mino.run("ask", "second", server=writer.server).out == "next\n"
    assert [turn.status for turn in mino.load()[0]][2:] == ["interrupted", "completed"]


@pytest.mark.parametrize("content", [b"", b"1 mino ask\n", b"\xff\0" * 5000])
def test_a_leftover_lock_is_no_lock(mino: Program, server: ScriptedServer, content: bytes) -> None:
    mino.write_session(GOOD)
    (mino.home / "sessions.lock").write_bytes(content)
    (mino.home / "sessions.lock").chmod(0o600)
    assert mino.run("ask", "q").status == 0


def test_a_lock_that_is_a_link_is_refused(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(GOOD)
    (mino.home / "precious").write_text("precious")
    (mino.home / "sessions.lock").symlink_to("precious")
    for words in (["ask", "q"], ["history", "show"]):
        refused = mino.run(*words)
        assert refused.status == 74 and "symbolic link" in refused.err
    assert (mino.home / "precious").read_text() == "precious" and not server.connections


def test_two_processes_of_many_questions_each(mino: Program, server: ScriptedServer) -> None:
    loop = 'for n in $(seq 25); do "$@" "$n" || exit; done'
    loops = [mino.start("ask", "--wait", "60", prefix=["sh", "-c", loop, "sh"]) for _ in range(2)]
    ends = [finish(process) for process in loops]
    assert [(end.status, end.out) for end in ends] == [(0, "巴黎 🗼\n" * 25)] * 2
    turns, report = mino.load()
    assert (report.state, report.turns) == ("clean", {"completed": 50})
    assert sorted(int(turn.user) for turn in turns) == sorted([*range(1, 26)] * 2)
    assert len(sent_texts(server.requests[-1].json)) == 99
    assert mino.run("history", "verify").status == 0


def test_first_starts_at_once_make_one_session(mino: Program, server: ScriptedServer) -> None:
    starts = [mino.start("ask", "--wait", "60", "q") for _ in range(4)]
    assert [finish(process).status for process in starts] == [0] * 4
    assert len(mino.files()) == 1 and mino.load()[1].turns == {"completed": 4}


def test_readers_do_not_keep_a_writer_out(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(GOOD)
    (mino.home / "sessions.lock").touch(0o600)
    done = threading.Event()
    results: list[int] = []

    def read_again_and_again() -> None:
        while not done.is_set():
            results.append(mino.run("history", "verify").status)

    readers = [threading.Thread(target=read_again_and_again) for _ in range(2)]
    for reader in readers:
        reader.start()
    wait_until(lambda: len(results) > 2)
    asked = [mino.run("ask", "q").status for _ in range(3)]
    done.set()
    for reader in readers:
        reader.join()
    assert asked == [0, 0, 0] and set(results) == {0}


@pytest.mark.parametrize(("words", "target"), [(["save", "other"], "other"), (["load", "work"], None)])
def test_a_copy_that_waited_does_not_bring_back_what_was_forgotten(
    mino: Program, server: ScriptedServer, words: list[str], target: str | None
) -> None:
    source = "work" if target is None else None
    session = [] if source is None else ["--session", source]
    for question in ("留下", "forget 忘记我"):
        assert mino.run("ask", *session, question).status == 0
    chat = mino.start("chat", *([] if target is None else ["--session", target]), stdin=-1)
    read_until(chat.stdout, b"You> ")
    waiting = mino.start("session", *words, "--wait", "60")
    read_until(waiting.stderr, b"waiting up to 60 seconds")
    assert mino.run("history", "forget", "--last", *session).status == 0
    assert finish(chat).status == 0
    # The end of what was read above stands first on stderr.
    out, _ = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, out) == (0, b"")
    for path in mino.home.rglob("*"):
        assert not path.is_file() or "忘记我".encode() not in path.read_bytes(), path
    copied = mino.session if target is None else mino.home / "saved" / f"{target}.jsonl"
    assert [turn.user for turn in load(copied.read_bytes())[0]] == ["留下"]
