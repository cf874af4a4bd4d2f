"""`mino chat` among conversations: `/open`, `/load`, `/clear`, their locks, and what becomes of `current`."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from mino.journal.lock import lock_exclusive
from tests.homes import case, completed, make_home, questions, save, saved_in, session_of
from tests.server import ScriptedServer
from tests.server import completed as answer
from tests.system.program import Ended, Program, finish, limited, read_until, sent_texts

OLD = completed(("你好，我是张三", "你好，张三 😀"), ("我叫什么名字？", "你叫张三。"))
OTHER = completed(("Name a colour.", "Blue."))
BUSY = "mino: {} is in use by process "


def chat(mino: Program, *lines: str, words: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Ended:
    """Say these lines to `mino chat`."""
    return mino.run("chat", *words, stdin="".join(f"{line}\n" for line in lines).encode(), env=env)


def current(mino: Program) -> str | None:
    """What `current` names."""
    path = mino.home / "current"
    return path.read_text().removesuffix("\n") if path.exists() else None


def asked(mino: Program) -> dict[str | None, list[str]]:
    """The questions of every conversation, that of None being the unnamed one; automatic copies are left out."""
    named = {name: content for name, content in saved_in(mino.home).items() if not name.startswith("auto-")}
    return {None: questions(session_of(mino.home))} | {name: questions(content) for name, content in named.items()}


@contextmanager
def talking(mino: Program, *words: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A chat that waits at its first prompt, and is ended at the end of the block."""
    process = mino.start("chat", *words, stdin=subprocess.PIPE)
    try:
        read_until(process.stdout, b"You> ")
        yield process
    finally:
        assert finish(process).status == 0


def say(process: "subprocess.Popen[bytes]", line: str) -> str:
    """Say the line to a chat, and wait for its next prompt; what stands on stdout before that."""
    assert process.stdin
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()
    return read_until(process.stdout, b"\n\nYou> ").decode()


def test_open_goes_on_there_and_lets_the_first_one_go(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD, 花园=OTHER)
    with talking(mino) as process:
        assert BUSY.format("the session") in mino.run("ask", "q").err
        assert "opened '花园': 1 turn\n" in say(process, "/open 花园")
        assert current(mino) == "花园"
        busy = mino.run("ask", "q")
        assert busy.status == 75 and busy.err.startswith(BUSY.format("the conversation '花园'") + f"{process.pid} ")
        assert mino.run("ask", "q", "--session", "新的").status == 0
        say(process, "种什么？🌷")
        assert "opened the unnamed conversation: 2 turns\n" in say(process, "/open")
        assert current(mino) is None
        assert mino.run("ask", "也浇水", "--session", "花园").status == 0
        say(process, "再见")
    assert asked(mino) == {
        None: ["你好，我是张三", "我叫什么名字？", "再见"],
        "花园": ["Name a colour.", "种什么？🌷", "也浇水"],
        "新的": ["q"],
    }
    contexts = [sent_texts(request.json) for request in server.requests]
    assert contexts[1] == ["Name a colour.", "Blue.", "种什么？🌷"]
    assert contexts[3] == ["你好，我是张三", "你好，张三 😀", "我叫什么名字？", "你叫张三。", "再见"]


def test_open_makes_what_is_missing_and_copies_nothing(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD)
    ended = chat(mino, "/open 旅行 🧳", "/open 旅行 🧳", "去哪里？", "/open other")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.count("opened '旅行 🧳': 0 turns\n") == 2
    assert sent_texts(server.requests[0].json) == ["去哪里？"]
    assert asked(mino) == {None: questions(OLD), "旅行 🧳": ["去哪里？"], "other": []}
    assert current(mino) == "other"
    assert session_of(mino.home) == OLD


@pytest.mark.parametrize("line", ["/open busy", "/open", "/load other", "/clear"])
def test_the_chat_stays_where_it_is_if_the_other_one_is_in_use(
    mino: Program, server: ScriptedServer, line: str
) -> None:
    home = make_home(mino.home, OLD, busy=OTHER, other=OTHER)
    mino.run("session", "open", "other")
    lock = home / "saved" / "busy.lock" if line == "/open busy" else home / "sessions.lock"
    with closing(lock_exclusive(str(lock), 0)):
        ended = chat(mino, line, "q")
    assert ended.status == 0
    what = "the conversation 'busy'" if line == "/open busy" else "the session"
    message, hint = ended.err.splitlines()
    assert message.startswith(BUSY.format(what)) and hint.startswith("hint: wait for it with ")
    assert asked(mino) == {None: questions(OLD), "busy": ["Name a colour."], "other": ["Name a colour.", "q"]}
    assert current(mino) == "other"


def test_a_chat_may_wait_for_the_other_one(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD, b=OTHER)
    with talking(mino, "--session", "b") as holder:
        process = mino.start("chat", "--wait", "60", stdin=subprocess.PIPE)
        read_until(process.stdout, b"You> ")
        assert process.stdin and process.stderr
        process.stdin.write(b"/open b\nq\n")
        process.stdin.flush()
        assert b"waiting up to 60 seconds: the conversation 'b' is in use" in process.stderr.readline()
        say(holder, "first")
    ended = finish(process)
    assert (ended.status, ended.err) == (0, "")
    assert asked(mino)["b"] == ["Name a colour.", "first", "q"]


@pytest.mark.parametrize("by", ["flag", "variable"])
@pytest.mark.parametrize(
    ("line", "there"), [("/open b", "b"), ("/open new", "new"), ("/open", None), ("/load b", None), ("/clear", None)]
)
def test_the_switch_of_a_chat_that_was_named_is_its_own(
    mino: Program, server: ScriptedServer, by: str, line: str, there: str | None
) -> None:
    make_home(mino.home, OLD, a=OTHER, b=OTHER, work=OTHER)
    mino.run("session", "open", "work")
    words, env = (("--session", "a"), {}) if by == "flag" else ((), {"MINO_SESSION": "a"})
    ended = chat(mino, "one", line, "two", words=words, env=env)
    assert (ended.status, ended.err) == (0, "")
    assert current(mino) == "work"
    after = asked(mino)
    assert [name for name, texts in after.items() if "two" in texts] == [there]
    assert [name for name, texts in after.items() if "one" in texts] == ["a"]
    before = {"/load b": ["Name a colour."], "/clear": []}.get(line, questions(OLD))
    assert [text for text in after[None] if text != "two"] == before
    assert after["work"] == ["Name a colour."]


@pytest.mark.parametrize("line", ["/load other", "/clear"])
def test_load_and_clear_save_what_the_unnamed_one_held_and_make_it_current(
    mino: Program, server: ScriptedServer, line: str
) -> None:
    make_home(mino.home, OLD, work=OTHER, other=OTHER)
    mino.run("session", "open", "work")
    ended = chat(mino, line, "q")
    assert (ended.status, ended.err, current(mino)) == (0, "", None)
    assert asked(mino) == {
        None: [*(["Name a colour."] if line == "/load other" else []), "q"],
        "work": ["Name a colour."],
        "other": ["Name a colour."],
    }
    assert OLD in saved_in(mino.home).values()


@pytest.mark.parametrize("line", ["/open broken", "/load broken"])
@pytest.mark.parametrize("broken", ["seq-gap", "unknown-type"])
def test_a_damaged_one_leaves_the_chat_where_it_is(
    mino: Program, server: ScriptedServer, line: str, broken: str
) -> None:
    make_home(mino.home, OLD, broken=case(broken))
    ended = chat(mino, line, "q")
    assert ended.status == 0 and f"'{mino.home}/saved/broken.jsonl' line " in ended.err
    assert questions(session_of(mino.home)) == [*questions(OLD), "q"]
    assert saved_in(mino.home) == {"broken": case(broken)}
    assert current(mino) is None


@pytest.mark.parametrize("line", ["/clear", "/load other"])
def test_a_damaged_unnamed_one_is_set_aside(mino: Program, server: ScriptedServer, line: str) -> None:
    damaged = case("seq-gap")
    make_home(mino.home, damaged, other=OTHER)
    ended = chat(mino, line, "q", words=("--session", "other"))
    (aside,) = set(saved_in(mino.home)) - {"other"}
    assert ended.status == 0 and f"it is set aside as '{aside}'" in ended.err
    assert saved_in(mino.home) == {"other": OTHER, aside: damaged}
    assert questions(session_of(mino.home)) == [*(["Name a colour."] if "load" in line else []), "q"]


@pytest.mark.parametrize("name", ["../../x", ".x", "-x", "a/b", "x" * 201, "b-recovery-20260101T000000Z-0123abcd"])
def test_what_is_no_name_is_refused_and_makes_no_file(mino: Program, server: ScriptedServer, name: str) -> None:
    """`/save ../../x` made a lock, which a name led out of the home."""
    make_home(mino.home, OLD)
    ended = chat(mino, f"/open {name}", f"/save {name}", f"/load {name}", "/history 1")
    assert ended.err.count("cannot be the name of a conversation: ") == 3 == ended.err.count("hint: /help\n")
    assert "> 我叫什么名字？" in ended.out
    assert {each.name for each in mino.home.iterdir()} <= {"sessions", "sessions.lock", ".gitignore"}
    assert [each.name for each in mino.home.parent.iterdir()] == [mino.home.name]


def test_what_a_chat_holds_is_neither_renamed_nor_deleted_nor_saved_over(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD, work=OTHER, other=OTHER)
    with talking(mino, "--session", "work") as process:
        for words in (["rename", "work", "x"], ["rename", "other", "work"], ["delete", "work"], ["save", "work"]):
            done = mino.run("session", *words)
            assert (done.status, BUSY.format("the conversation 'work'") in done.err) == (75, True), words
        assert "work   (in use) Name a colour." in mino.run("session", "list").out
        assert "(in use)" not in mino.run("session", "list").out.replace("work   (in use)", "")
        say(process, "q")
    assert asked(mino) == {None: questions(OLD), "work": ["Name a colour.", "q"], "other": ["Name a colour."]}


def test_a_save_to_what_is_in_use_is_refused_and_the_chat_goes_on(mino: Program, server: ScriptedServer) -> None:
    home = make_home(mino.home, OLD, busy=OTHER)
    with closing(lock_exclusive(str(home / "saved" / "busy.lock"), 0)):
        ended = chat(mino, "/save busy", "/save free", "q")
    assert ended.status == 0 and ended.err.startswith(BUSY.format("the conversation 'busy'"))
    assert saved_in(mino.home) == {"busy": OTHER, "free": OLD}
    assert questions(session_of(mino.home))[-1] == "q"


def test_a_named_conversation_is_not_saved_as_itself(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD, work=OTHER)
    ended = chat(mino, "q", "/save work", words=("--session", "work"))
    assert (ended.status, ended.err) == (0, "")
    assert "this is the conversation 'work'; there is nothing to save\n" in ended.out
    assert asked(mino) == {None: questions(OLD), "work": ["Name a colour.", "q"]}


def test_undo_of_a_named_one_keeps_a_copy_of_that_name(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, None, 计划=OLD)
    ended = chat(mino, "/undo", words=("--session", "计划"))
    (copy,) = set(saved_in(mino.home)) - {"计划"}
    assert copy.startswith("计划.~") and f"saved as '{copy}'\n" in ended.out
    assert saved_in(mino.home)[copy] == OLD
    assert questions(saved_in(mino.home)["计划"]) == ["你好，我是张三"]


def test_a_current_one_that_is_missing_is_not_started_unasked(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD, work=OTHER)
    mino.run("session", "open", "work")
    (mino.home / "saved" / "work.jsonl").unlink()
    ended = chat(mino, "q")
    assert (ended.status, ended.out) == (66, "") and "the current conversation 'work' is not there" in ended.err
    assert server.requests == [] and saved_in(mino.home) == {}
    assert chat(mino, "q", words=("--session", "work")).status == 0
    assert asked(mino)["work"] == ["q"]


@pytest.mark.parametrize(("line", "named"), [("/open 'b", "--session ''\\''b' "), ("/history", "--session 'a' ")])
def test_a_hint_means_the_conversation_that_the_chat_is_in(mino: Program, line: str, named: str) -> None:
    """After `/open` the hint named the conversation that the chat had begun with."""
    make_home(mino.home, None, a=b"")
    save(mino.home, "'b", b"")
    with ScriptedServer(answer("长" * 1000)) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended = mino.run("chat", "--session", "a", stdin=f"{line}\nq\n".encode(), prefix=limited(1000))
    assert ended.status == 74
    assert ended.err.endswith(f"\nhint: mino {named}history verify\n")


def test_the_third_seed(mino: Program) -> None:
    """Save a checkpoint, clear, leave; load it in another process, look at it, go on: no text of the other is sent."""
    with ScriptedServer(*(answer(f"答{n} 🚩") for n in range(1, 6))) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        first = chat(mino, "任务一", "第二步", "/save mytask", "/clear", "无关的话", "/exit")
        second = chat(mino, "/load 没有", "/load mytask", "/history", "/history 1", "第三步", "/sessions")
    assert (first.status, first.err) == (0, "")
    assert (second.status, second.err) == (0, "mino: there is no conversation '没有'\nhint: /sessions\n")
    contexts = [sent_texts(request.json) for request in server.requests]
    assert contexts[2] == ["无关的话"]
    assert contexts[3] == ["任务一", "答1 🚩", "第二步", "答2 🚩", "第三步"]
    assert "loaded 'mytask': 2 turns\n" in second.out
    assert second.out.count("> 任务一\n\n答1 🚩\n") == 1 and second.out.count("> 第二步\n\n答2 🚩\n") == 2
    listed = [line for line in second.out.splitlines() if "无关的话" in line or "任务一" in line][-3:]
    assert [line.split()[0] == "*" for line in listed].count(True) == 1
    assert any(line.startswith("* ") and "    3  - " in line and line.endswith("任务一") for line in listed)
    assert any("    2  mytask" in line and line.endswith("任务一") for line in listed)
    assert asked(mino) == {None: ["任务一", "第二步", "第三步"], "mytask": ["任务一", "第二步"]}
    assert sorted(map(questions, saved_in(mino.home).values())) == [["任务一", "第二步"], ["无关的话"]]
