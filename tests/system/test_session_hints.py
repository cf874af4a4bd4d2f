"""Hints about named conversations: pasted as they are, for that home and that conversation, they lead on."""

import os
import shutil
from contextlib import closing

import pytest

from mino.journal.lock import lock_exclusive
from tests.homes import case, completed, make_home, questions, save, saved_in, session_of
from tests.server import ScriptedServer
from tests.system.program import Program
from tests.system.test_hints import paste

OLD = completed(("你好，我是张三", "你好，张三 😀"), ("我叫什么名字？", "你叫张三。"))
OTHER = completed(("Name a colour.", "Blue."))
NAMES = ["it's 计划", "$(exit 9) `exit 9` *", "花园; mino history show"]

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="hints are pasted into bash")


def named_home(mino: Program, name: str, content: bytes) -> list[str]:
    """Make a home that no variable names, with a conversation of that content; the options that choose them."""
    home = make_home(mino.home, OLD)
    save(home, name, content)
    del mino.environ["MINO_HOME"]
    return ["--home", str(home), "--session", name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damaged", ["seq-gap", "line-3-bad-json"])
def test_from_a_damaged_one_to_a_working_one(mino: Program, server: ScriptedServer, name: str, damaged: str) -> None:
    options = named_home(mino, name, case(damaged) if damaged == "seq-gap" else b"{]\n" + OTHER)
    before = saved_in(mino.home)[name]
    stopped = mino.run("ask", "q", *options)
    assert stopped.status == 65 and server.requests == []
    looked = paste(stopped, mino.home.parent)
    assert looked.status == 1 and "salvage would keep" in looked.out and saved_in(mino.home) == {name: before}
    assert paste(looked, mino.home.parent).status == 0
    assert mino.run("ask", "q", *options).status == 0
    assert questions(saved_in(mino.home)[name])[-1] == "q"
    assert session_of(mino.home) == OLD


def test_from_a_torn_one_to_a_clean_one(mino: Program) -> None:
    options = named_home(mino, "it's", OTHER[:-10])
    verified = mino.run("history", "verify", *options)
    assert verified.status == 1
    assert paste(verified, mino.home.parent).status == 0
    assert (mino.run("history", "verify", *options).status, session_of(mino.home)) == (0, OLD)


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_that_is_not_there_is_looked_for_in_that_conversation(mino: Program, name: str) -> None:
    options = named_home(mino, name, OTHER)
    for words in (["show", "--turn", "9"], ["export", "--turn", "9"], ["forget", "9"], ["forget"]):
        missed = mino.run("history", *words, *options)
        assert missed.status == (2 if words == ["forget"] else 66), words
        shown = paste(missed, mino.home.parent)
        assert (shown.status, "Name a colour." in shown.out, "张三" in shown.out) == (0, True, False), words


@pytest.mark.parametrize("words", [["history", "show"], ["session", "load"], ["session", "delete"]])
def test_a_name_that_is_not_there_leads_to_the_list(mino: Program, words: list[str]) -> None:
    home = named_home(mino, "there", OTHER)[1]
    last = ["--session", "没有"] if words[0] == "history" else ["没有"]
    missed = mino.run("--home", home, *words, *last)
    listed = paste(missed, mino.home.parent)
    assert (missed.status, listed.status, "  there" in listed.out) == (66, 0, True)


def test_a_pattern_that_is_not_there_is_looked_for_everywhere(mino: Program) -> None:
    options = named_home(mino, "it's", OTHER)
    missed = mino.run("history", "search", "张三", *options)
    assert missed.status == 66
    hint = missed.err.splitlines()[-1]
    assert hint.startswith("hint: mino ") and "--all" in hint
    found = mino.run("history", "search", "--all", "张三", *options[:2])
    assert found.status == 0 and "你好，我是张三" in found.out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("name", NAMES[:2])
def test_an_answer_that_could_not_be_written_is_shown_by_the_hint(
    mino: Program, server: ScriptedServer, name: str
) -> None:
    options = named_home(mino, name, OTHER)
    with open("/dev/full", "wb") as full:
        failed = mino.run("ask", "q", *options, stdout=full)
    shown = paste(failed, mino.home.parent)
    assert (failed.status, shown.status, "巴黎 🗼" in shown.out) == (74, 0, True)


def test_both_ways_around_one_that_is_in_use(mino: Program, server: ScriptedServer) -> None:
    options = named_home(mino, "忙", OTHER)
    with closing(lock_exclusive(str(mino.home / "saved" / "忙.lock"), 0)):
        for words in (["ask", "q"], ["chat"]):
            busy = mino.run(*words, *options)
            hint = "hint: wait for it with --wait SECONDS, or use another conversation with --session NAME\n"
            assert (busy.status, busy.err.endswith(hint)) == (75, True), words
        assert mino.run("ask", "q", *options[:2], "--session", "另一个").status == 0
        waiting = mino.start("ask", "q", "--wait", "60", *options)
        assert waiting.stderr and b"waiting up to 60 seconds" in waiting.stderr.readline()
    waiting.communicate(timeout=120)
    assert waiting.returncode == 0
    assert {name: questions(content)[-1] for name, content in saved_in(mino.home).items()} == {"忙": "q", "另一个": "q"}


@pytest.mark.parametrize("way", ["import", "rename"])
def test_a_name_that_is_taken_leads_to_the_list_of_this_home(mino: Program, way: str) -> None:
    home = named_home(mino, "there", OTHER)[1]
    file = mino.home.parent / "messages.json"
    file.write_text('[{"role": "user", "content": "问"}, {"role": "assistant", "content": "答"}]')
    words = (
        ["rename", "there", "there too"] if way == "rename" else ["import", "there", str(file), "--from", "messages"]
    )
    save(mino.home, "there too", OLD)
    done = mino.run("--home", home, "session", *words)
    assert done.status == 73 and saved_in(mino.home) == {"there": OTHER, "there too": OLD}
    assert "  there too" in paste(done, mino.home.parent).out
