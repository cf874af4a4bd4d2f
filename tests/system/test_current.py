"""The current conversation: one that is missing, what is no name, and one that changes while a command waits."""

import re
import shlex
from contextlib import closing

import pytest

from mino.journal.lock import lock_exclusive
from tests.homes import completed, make_home, questions, saved_in, session_of, write
from tests.server import ScriptedServer
from tests.system.program import Ended, Program, finish, read_until

OLD = completed(("你好，我是张三", "你好，张三 😀"), ("我叫什么名字？", "你叫张三。"))
WORK = completed(("Name a colour.", "Blue."))
COMMANDS = [
    ["ask", "q"],
    ["ask", "--dry-run", "q"],
    ["chat"],
    ["history", "show"],
    ["history", "search", "a"],
    ["history", "verify"],
    ["history", "recover"],
    ["history", "forget", "--last"],
    ["history", "export"],
    ["session", "save", "x"],
]


def without_current(mino: Program, name: str) -> None:
    """A home whose current conversation, called `name`, was deleted by hand."""
    make_home(mino.home, OLD, other=WORK)
    assert mino.run("session", "open", name).status == 0
    (mino.home / "saved" / f"{name}.jsonl").unlink()


@pytest.mark.parametrize("words", COMMANDS)
def test_one_that_is_missing_is_not_started_unasked(mino: Program, server: ScriptedServer, words: list[str]) -> None:
    without_current(mino, "工作")
    stopped = mino.run(*words)
    assert (stopped.status, stopped.out) == (66, "")
    assert stopped.err == (
        "mino: the current conversation '工作' is not there\n"
        "hint: mino session open '工作' starts it anew; mino session open returns to the unnamed one\n"
    )
    assert server.requests == []
    assert (session_of(mino.home), saved_in(mino.home)) == (OLD, {"other": WORK})


@pytest.mark.parametrize("name", ["it's 工作", "a b; exit 9", "$(exit 9)"])
@pytest.mark.parametrize("way", ["starts it anew", "returns to the unnamed one"])
def test_both_ways_out_work(mino: Program, server: ScriptedServer, name: str, way: str) -> None:
    without_current(mino, name)
    stopped = mino.run("ask", "q")
    (command,) = re.findall(rf"(?:hint: |; )(mino (?:(?!; mino ).)*?) {way}", stopped.err)
    assert mino.run(*shlex.split(command)[1:]).status == 0
    assert mino.run("ask", "q").status == 0
    assert saved_in(mino.home).keys() == {"other", *([name] if way == "starts it anew" else [])}
    started = saved_in(mino.home)[name] if way == "starts it anew" else session_of(mino.home)
    assert questions(started) == [*([] if way == "starts it anew" else questions(OLD)), "q"]


@pytest.mark.parametrize(
    "words", [["session", "list"], ["session", "list", "--json"], ["history", "show"], ["ask", "q"]]
)
def test_who_names_another_is_not_concerned(mino: Program, server: ScriptedServer, words: list[str]) -> None:
    without_current(mino, "工作")
    done = mino.run(*words, *([] if words[0] == "session" else ["--session", "other"]))
    assert (done.status, done.err) == (0, "")
    assert ("巴黎 🗼" if words[0] == "ask" else "Name a colour.") in done.out
    assert (mino.home / "current").read_text() == "工作\n"


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\n", b"../x\n", b"work\nother\n", b".x", b"y" * 10_000])
def test_what_is_no_name_is_reported_and_counts_as_none(mino: Program, server: ScriptedServer, content: bytes) -> None:
    make_home(mino.home, OLD, other=WORK)
    path = write(mino.home / "current", content)
    report = f"mino: '{path}' holds no name of a conversation, so that the unnamed one is current\n"
    for words in (["ask", "q"], ["history", "show"], ["history", "verify"], ["session", "save", "x"], ["chat"]):
        done = mino.run(*words)
        assert (done.status, done.err.count(report)) == (0, 1), words
    assert questions(session_of(mino.home))[-1] == "q"
    listed = mino.run("session", "list")
    assert listed.err == report and [line[0] for line in listed.out.splitlines() if "  -  " in line] == ["*"]
    assert mino.run("ask", "q", "--session", "other").err == ""
    assert path.read_bytes() == content
    assert mino.run("session", "open").status == 0
    assert mino.run("ask", "q").err == ""


def test_a_command_that_waited_means_what_is_current_then(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD, work=WORK, other=WORK)
    mino.run("session", "open", "work")
    with closing(lock_exclusive(str(mino.home / "saved" / "work.lock"), 0)):
        process = mino.start("ask", "--wait", "60", "q")
        read_until(process.stderr, b"waiting up to 60 seconds: the conversation 'work' is in use")
        assert mino.run("session", "open", "other").status == 0
    assert finish(process).status == 0
    assert (saved_in(mino.home)["work"], session_of(mino.home)) == (WORK, OLD)
    assert questions(saved_in(mino.home)["other"]) == ["Name a colour.", "q"]


def test_a_current_that_is_deleted_or_renamed_goes_along(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD)
    assert mino.run("session", "open", "甲").status == 0

    def rename(old: str, new: str) -> Ended:
        return mino.run("session", "rename", old, new)

    assert mino.run("ask", "一").status == 0 and rename("甲", "乙").status == 0
    assert mino.run("ask", "二").status == 0 and rename("乙", "乙").status == 0
    assert questions(saved_in(mino.home)["乙"]) == ["一", "二"]
    assert mino.run("session", "delete", "乙").status == 0
    assert mino.run("ask", "三").status == 0
    assert saved_in(mino.home) == {} and questions(session_of(mino.home))[-1] == "三"
