"""`mino chat` over pipes: every line of standard input is a question, and stdout is the transcript."""

import os
import signal
import subprocess
import threading

import pytest

from mino.commands.show import format_turn
from tests import homes
from tests.server import (
    Recorded,
    Reply,
    ScriptedServer,
    completed,
    delta,
    ended,
    error,
    events,
    item_done,
    message,
    wait_until,
)
from tests.system.program import Ended, Program, finish, limited, read_until, sent_texts

TURN = ["user_message", "assistant_message", "completed"]
BLUE = "我最喜欢的颜色是蓝色。"
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "opaque 🔒"}
SECRET = {**message("蓝色，记住了 🎨"), "phase": "final_answer"}


def chat(mino: Program, *lines: str, words: tuple[str, ...] = ()) -> Ended:
    """Say these lines to `mino chat`."""
    return mino.run("chat", *words, stdin="".join(f"{line}\n" for line in lines).encode())


def said(chat: Ended) -> str:
    """The transcript without the banner."""
    banner, _, transcript = chat.out.partition("\n\n")
    assert banner.startswith("Mino ")
    return transcript


def outputs(ended: Ended) -> list[str]:
    """What each line but the last brought forth."""
    parts = said(ended).split("You> ")[1:-1]
    return [part.partition("\n")[2].removesuffix("\n") for part in parts]


def test_a_colour_is_told_and_asked_for_after_a_restart(mino: Program) -> None:
    told = completed("蓝色，记住了 🎨", output=[REASONING, SECRET])
    with ScriptedServer(told, completed("蓝色。")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        first = chat(mino, BLUE, "/exit")
        assert (first.status, first.err) == (0, "")
        assert said(first) == f"You> {BLUE}\n\nAssistant> 蓝色，记住了 🎨\n\nYou> /exit\nGoodbye.\n"
        second = chat(mino, "我刚才说最喜欢什么颜色？")
        assert (second.status, second.err) == (0, "")
        # The end of input leaves too; old turns are not shown again.
        assert said(second) == "You> 我刚才说最喜欢什么颜色？\n\nAssistant> 蓝色。\n\nYou> \nGoodbye.\n"
    assert len(server.requests) == 2
    assert sent_texts(server.requests[0].json) == [BLUE]
    sent = server.requests[1].json["input"]
    assert sent[1:3] == [REASONING, SECRET]
    assert [item["content"][0]["text"] for item in (sent[0], sent[3])] == [BLUE, "我刚才说最喜欢什么颜色？"]
    assert len(sent) == 4
    assert mino.types() == TURN * 2
    records = mino.records()
    assert [record["seq"] for record in records] == [1, 2, 3, 4, 5, 6]
    assert "Assistant>" not in mino.session.read_text()


def test_the_banner_names_the_model_the_file_and_the_ways_out(mino: Program, server: ScriptedServer) -> None:
    ended = mino.run("chat", "-m", "some-model", stdin=b"")
    banner, _, rest = ended.out.partition("\n\n")
    assert "some-model" in banner and server.url in banner
    assert str(mino.session).replace(mino.environ["HOME"], "~", 1) in banner
    assert all(way in banner for way in ("/exit", "Ctrl+D", "Ctrl+C", "/help"))
    assert rest == "You> \nGoodbye.\n"
    assert (ended.status, ended.err, server.requests) == (0, "", [])
    assert mino.records() == []


def test_the_banner_names_the_conversation_and_its_turns(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(homes.completed(("问", "答")))
    assert ".jsonl (1 turn)\n" in mino.run("chat", stdin=b"").out
    mino.run("session", "open", "旅行 🧳")
    assert ".jsonl (旅行 🧳, empty so far)\n" in mino.run("chat", stdin=b"").out


def test_an_answer_is_shown_as_it_arrives(mino: Program) -> None:
    gate = threading.Event()
    with ScriptedServer(events(delta("first"), gate, delta(" second"), ended())) as server:
        process = mino.start("chat", server=server, stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(b"q\n")
        process.stdin.flush()
        shown = read_until(process.stdout, b"first")
        assert shown.endswith(b"You> q\n\nAssistant> first")  # and no sign of waiting
        gate.set()
        assert finish(process).out == " second\n\nYou> \nGoodbye.\n"


def test_the_next_question_waits_until_the_last_turn_is_on_disk(mino: Program) -> None:
    gate = threading.Event()
    seen: list[list[str]] = []

    def look(request: Recorded) -> Reply:
        seen.append(mino.types())
        return completed("two")

    with ScriptedServer(events(delta("one"), gate, ended()), look) as server:
        process = mino.start("chat", server=server, stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(b"first\nsecond\n")
        process.stdin.close()
        process.stdin = None
        read_until(process.stdout, b"Assistant> one")
        assert len(server.requests) == 1
        gate.set()
        assert finish(process).status == 0
    assert seen == [[*TURN, "user_message"]]


def test_a_failed_question_is_told_and_the_next_may_be_asked(mino: Program) -> None:
    script = [
        completed("one"),
        error(400, "倒霉", param="model"),
        events(delta("half"), ending="cut"),
        completed("four"),
    ]
    with ScriptedServer(*script) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended = chat(mino, "q1", "q2", "q3", "q4")
    assert ended.status == 69
    assert "mino: the service answered 400: 倒霉\n" in ended.err
    assert "mino: the answer broke off: " in ended.err
    assert "Assistant> half\n\nYou> q4\n\nAssistant> four\n" in ended.out
    assert mino.types() == [*TURN, "user_message", "failed", "user_message", "failed", *TURN]
    assert sent_texts(server.requests[3].json) == ["q1", "one", "q4"]


def test_an_incomplete_answer_is_told_with_its_reason(mino: Program) -> None:
    cut = events(delta("half an ans"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    with ScriptedServer(cut, completed("whole")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended_ = chat(mino, "q", "again")
    assert (ended_.status, ended_.err) == (3, "mino: the service cut the answer short: max_output_tokens\n")
    assert mino.types() == ["user_message", "failed", *TURN]
    assert sent_texts(server.requests[1].json) == ["again"]


def test_a_refusal_is_shown_as_one_and_sent_back_without_the_prefix(mino: Program) -> None:
    item = {**message(""), "content": [{"type": "refusal", "refusal": "I cannot help."}]}
    spoken = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I cannot help."}
    with ScriptedServer(events(spoken, item_done(item), ended(output=[item])), completed("ok")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended_ = chat(mino, "q", "again")
    assert "Assistant> Model refused: I cannot help.\n\n" in ended_.out
    assert server.requests[1].json["input"][1] == item


def test_without_a_terminal_the_status_is_that_of_the_last_question_that_failed(mino: Program) -> None:
    cut = events(delta("half"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    for script, status in (
        ([error(400, "no"), cut, completed("ok")], 3),
        ([cut, error(400, "no"), completed("ok")], 69),
        ([cut, error(401, "no key")], 77),
        ([completed("one"), completed("two")], 0),
    ):
        with ScriptedServer(*script) as server:
            mino.environ["OPENAI_BASE_URL"] = server.url
            # A command that fails is no question that failed, and takes nothing back.
            told = chat(mino, *(f"q{number}" for number in range(len(script))), "/load nothing", "/exit")
        assert (told.status, told.out.endswith("/exit\nGoodbye.\n")) == (status, True), told.err


# What is not sent


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"caf\xe9", "mino: the question is not UTF-8: 0xe9 at byte 3"),
        ("零\0".encode(), "mino: the question has a NUL at byte 3"),
        (b"/foo bar", "mino: unknown command '/foo'; nothing was sent"),
        (b"/", "mino: unknown command '/'; nothing was sent"),
        (b"  /Save x", "mino: unknown command '/Save'; nothing was sent"),
        (b"/exit now", "mino: /exit takes no argument"),
        (b"/save", "mino: /save takes a name"),
        (b"/history two", "mino: 'two' is not a number of turns"),
        ("/load 没有".encode(), "mino: there is no conversation '没有'\nhint: /sessions"),
        (b"/load ../x", "mino: '../x' cannot be the name of a conversation: it begins with `.`\nhint: /help"),
        (b"/undo", "mino: there is no turn to remove"),
        (b"\xef\xbb\xbf/foo", "mino: unknown command '/foo'; nothing was sent"),
        (b"/foo\n\xef\xbb\xbf", "mino: unknown command '/foo'; nothing was sent"),
        (b"", ""),
        (b" \t\r", ""),
    ],
)
def test_what_is_no_question_is_told_and_not_sent(
    mino: Program, server: ScriptedServer, line: bytes, told: str
) -> None:
    ended = mino.run("chat", stdin=line + b"\nreal question\n")
    assert ended.status == (65 if "the question" in told else 0)
    assert ended.err.startswith(told) and bool(ended.err) == bool(told)
    assert [sent_texts(request.json) for request in server.requests] == [["real question"]]
    assert mino.types() == TURN


@pytest.mark.parametrize(
    ("line", "question"),
    [
        (b"//etc/passwd // \xe6\x98\xaf", "/etc/passwd // 是"),
        (b"  two  spaces \r", "  two  spaces "),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        (b"\n\xef\xbb\xbf//with a mark\xef\xbb\xbf", "/with a mark\ufeff"),
        (b"no newline \xf0\x9f\x90\x95", "no newline 🐕"),
    ],
)
def test_a_line_is_the_question(mino: Program, server: ScriptedServer, line: bytes, question: str) -> None:
    mino.run("chat", stdin=line if line.startswith(b"no") else line + b"\n")
    assert [sent_texts(request.json) for request in server.requests] == [[question]]


def test_a_long_line_and_many_lines_arrive_whole(mino: Program, server: ScriptedServer) -> None:
    long = "长🐕" * 100_000
    assert mino.run("chat", stdin=b"\n" * 20_000 + long.encode()).status == 0
    assert [sent_texts(request.json) for request in server.requests] == [[long]]


# Instructions, context, the ladder


def test_soul_is_read_anew_for_each_request(mino: Program) -> None:
    mino.home.mkdir(mode=0o700)
    soul = mino.home / "SOUL.md"
    soul.write_text("one")

    def then(data: bytes | None) -> Reply:
        if data is None:
            soul.unlink()
        else:
            soul.write_bytes(data)
        return completed("ok")

    script = [lambda _: then("二".encode()), lambda _: then(b"\xff"), lambda _: then(None)]
    with ScriptedServer(*script) as server:
        process = mino.start("chat", server=server, stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(b"q1\nq2\nq3\n")
        process.stdin.flush()
        assert process.stderr
        told = process.stderr.readline() + process.stderr.readline()
        soul.write_text("four")
        process.stdin.write(b"q4\n")
        assert finish(process).status == 78
    assert f"mino: '{soul}' is not UTF-8 at byte 0" in told.decode()
    assert [request.json["instructions"] for request in server.requests] == ["one", "二", "four"]
    assert mino.types() == TURN * 3  # nothing was written of the question that was not sent
    assert not soul.exists()


def test_instructions_that_are_named_are_read_anew_too(mino: Program, server: ScriptedServer) -> None:
    ended = chat(mino, "q", words=("--instructions", "missing.txt"))
    assert (ended.status, ended.err) == (66, "mino: 'missing.txt' does not exist\n")
    assert server.requests == []


def test_context_chooses_how_many_turns_are_sent(mino: Program, server: ScriptedServer) -> None:
    chat(mino, "one", "two", "three", words=("--context", "1"))
    assert sent_texts(server.requests[2].json) == ["two", "巴黎 🗼", "three"]


def test_the_form_that_a_server_takes_is_remembered(mino: Program) -> None:
    refused = error(404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.")
    told = completed("one", output=[REASONING, message("one")])
    with ScriptedServer(told, refused, completed("two"), completed("three")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended = chat(mino, "q1", "q2", "q3")
    assert ended.status == 0 and ended.err.count('replay = "text"') == 1
    assert [["id" in str(request.json["input"])] for request in server.requests[1:]] == [[True], [False], [False]]
    assert len(server.requests) == 4


# The lock


def test_one_lock_for_the_whole_chat(mino: Program, server: ScriptedServer) -> None:
    process = mino.start("chat", stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.write("问\n".encode())
    process.stdin.flush()
    read_until(process.stdout, "巴黎 🗼\n\nYou> ".encode())
    for words in (["chat"], ["ask", "q"], ["session", "new"]):
        second = mino.run(*words)
        assert second.status == 75
        assert f"mino: the session is in use by process {process.pid} " in second.err and "chat)" in second.err
        assert second.out == ""
    reader = mino.run("history", "show")
    assert reader.status == 0 and "> 问\n\n巴黎 🗼\n" in reader.out
    assert mino.run("session", "list").status == 0
    assert finish(process).out == "\nGoodbye.\n"
    assert len(server.requests) == 1


# Storage


def test_a_question_that_cannot_be_saved_is_not_sent_and_ends_the_chat(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(homes.completed(("a", "b")))
    size = mino.session.stat().st_size
    ended = mino.run("chat", stdin=b"q1\nq2\n", prefix=limited(size + 10))
    assert ended.status == 74
    assert "the question was not sent" in ended.err
    assert "Goodbye" not in ended.out and server.requests == []


def test_an_answer_that_cannot_be_saved_ends_the_chat(mino: Program) -> None:
    with ScriptedServer(completed("长" * 1000)) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended = mino.run("chat", stdin=b"q1\nq2\n", prefix=limited(1000))
    assert ended.status == 74
    assert "长" * 1000 in ended.out and "Goodbye" not in ended.out
    assert "the answer was shown and may not be saved\nhint: mino history verify\n" in ended.err
    assert len(server.requests) == 1


def test_a_session_file_that_is_taken_away_ends_the_chat(mino: Program) -> None:
    def take(request: Recorded) -> Reply:
        mino.session.unlink()
        return completed("gone")

    with ScriptedServer(take) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended = chat(mino, "q1", "q2")
    assert ended.status == 74 and "is gone" in ended.err
    assert len(server.requests) == 1
    assert mino.files() == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_stdout(mino: Program, server: ScriptedServer) -> None:
    with open("/dev/full", "wb") as full:
        ended = mino.run("chat", stdin=b"q\n", stdout=full)
    assert ended.status == 74 and "mino: cannot write to stdout: " in ended.err
    assert server.requests == []


def test_a_stdout_that_fills_up_amid_an_answer_loses_no_turn(mino: Program) -> None:
    log = mino.home.parent / "log"
    log.write_bytes(b"\0" * 7500)
    with ScriptedServer(completed("x" * 2000)) as server, open(log, "ab") as out:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended = mino.run("chat", stdin=b"q1\nq2\n", stdout=out, prefix=limited(8000))
    assert ended.status == 74
    assert "mino: cannot write to stdout: " in ended.err
    assert ended.err.endswith(f"\nhint: mino history show --turn {mino.records()[0]['turn_id']}\n")
    assert mino.types() == TURN and len(server.requests) == 1


# Ends


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_amid_an_answer_cancels_the_turn_and_kills(mino: Program, signum: int) -> None:
    with ScriptedServer(events(delta("half"), threading.Event())) as server:
        process = mino.start("chat", server=server, stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(b"q\nnever asked\n")
        process.stdin.flush()
        read_until(process.stdout, b"Assistant> half")
        process.send_signal(signum)
        rest = finish(process)
        assert server.requests[0].hung_up.wait(10)
    assert (rest.status, rest.out) == (-signum, "\n")
    assert rest.err == "mino: left the chat; the turn is saved as cancelled\n"
    assert mino.types() == ["user_message", "cancelled"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_the_prompt_kills(mino: Program, server: ScriptedServer, signum: int) -> None:
    process = mino.start("chat", stdin=subprocess.PIPE)
    read_until(process.stdout, b"You> ")
    process.send_signal(signum)
    rest = finish(process)
    assert (rest.status, rest.out, rest.err) == (-signum, "\n", "mino: left the chat; the conversation is saved\n")
    assert mino.records() == []


def test_a_reader_that_goes_while_chat_waits_for_a_line_ends_it(mino: Program, server: ScriptedServer) -> None:
    process = mino.start("chat", stdin=subprocess.PIPE)
    read_until(process.stdout, b"You> ")
    assert process.stdout
    process.stdout.close()
    wait_until(lambda: process.poll() is not None)
    assert process.returncode == -signal.SIGPIPE
    assert process.stderr and process.stderr.read() == b""
    process.stderr.close()
    assert process.stdin
    process.stdin.close()


@pytest.mark.parametrize("redirection", ["<&-", "</dev/null"])
def test_no_input_at_all(mino: Program, server: ScriptedServer, redirection: str) -> None:
    prefix = ["sh", "-c", f'exec "$@" {redirection}', "sh"]
    ended = mino.run("chat", prefix=prefix)
    assert (ended.status, said(ended), ended.err) == (0, "You> \nGoodbye.\n", "")


def test_without_a_key_nothing_is_made(mino: Program) -> None:
    ended = chat(mino, "q")
    assert (ended.status, ended.out) == (78, "") and "no key" in ended.err
    assert not mino.home.exists()


def test_an_invalid_history_is_not_touched(mino: Program, server: ScriptedServer) -> None:
    path = mino.write_session(b"{}\n" + homes.completed(("a", "b")))
    before = path.read_bytes()
    ended = chat(mino, "q")
    assert (ended.status, ended.out) == (65, "")
    assert path.read_bytes() == before and server.requests == []


# The commands


def test_save_drift_load_and_branch(mino: Program) -> None:
    with ScriptedServer(*(completed(f"答{n}") for n in range(1, 6))) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended = chat(
            mino,
            *("一", "/save 起点 🚩", "二", "/load 起点 🚩", "三", "/load 起点 🚩", "四"),
            *("/clear", "五", "/sessions", "/exit"),
        )
    assert (ended.status, ended.err) == (0, "")
    contexts = [sent_texts(request.json) for request in server.requests]
    # Loading replaces; it appends nothing.
    assert contexts == [["一"], ["一", "答1", "二"], ["一", "答1", "三"], ["一", "答1", "四"], ["五"]]
    assert "saved 1 turn as '起点 🚩'\n" in ended.out
    assert ended.out.count("loaded '起点 🚩': 1 turn\n") == 2
    assert "started an empty conversation\n" in ended.out
    [live] = [line for line in ended.out.splitlines() if line.startswith("* ")]
    assert live.endswith("五")
    assert len([path for path in mino.files() if path.suffix == ".jsonl"]) == 1
    saved = homes.saved_in(mino.home)
    assert homes.questions(saved.pop("起点 🚩")) == ["一"]
    # Each branch that was left is kept.
    assert sorted(homes.questions(data) for data in saved.values()) == [["一", "三"], ["一", "二"], ["一", "四"]]
    assert homes.questions(homes.session_of(mino.home)) == ["五"]


def test_undo_takes_the_last_turn_out_of_the_context(mino: Program) -> None:
    with ScriptedServer(
        completed("one"), error(400, "no", param="model"), completed("two"), completed("three")
    ) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        ended = chat(mino, "q1", "q2", "/undo", "q3", "/undo", "q4")
    assert ended.status == 69
    assert "removed turn 2 (failed): 1 turn left\n" in ended.out
    assert "removed turn 2 (completed): 1 turn left\n" in ended.out
    assert sent_texts(server.requests[3].json) == ["q1", "one", "q4"]
    assert [record["seq"] for record in mino.records()] == [1, 2, 3, 4, 5, 6]


def test_history_shows_the_last_turns_as_history_show_does(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(homes.completed(*((f"问{n}", f"答{n}\n第二行") for n in range(12))))
    ended = chat(mino, "/history 2", "/history", "/history 0", "/history 99999999999999999999", "/exit")
    assert ended.status == 0
    turns, _ = mino.load()
    two, ten, none, every = outputs(ended)
    assert two == "\n".join(format_turn(turn, in_use=False) for turn in turns[-2:])
    assert ten == "\n".join(format_turn(turn, in_use=False) for turn in turns[-10:])
    assert none == "there are no turns yet\n"
    assert every == mino.run("history", "show").out
    assert server.requests == []


def test_help_names_every_command_and_the_keys(mino: Program, server: ScriptedServer) -> None:
    out = chat(mino, "/help").out
    for word in ("/save NAME", "/load NAME", "/sessions", "/history [N]", "/clear", "/undo", "/help", "/exit"):
        assert f"\n{word} " in out
    assert "//" in out and "Alt+Enter" in out and "Ctrl+D" in out


# The warning


def many(turns: int) -> bytes:
    """A session of so many turns."""
    return homes.completed(*((f"q{n}", f"a{n}") for n in range(turns)))


def test_from_twenty_turns_on_the_context_is_called_large_and_never_cut(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(many(18))
    ended = chat(mino, "19", "20", "21", "/clear", "1")
    large = [line for line in ended.err.splitlines() if line.startswith("mino: the context is large")]
    assert [line.split(": ")[2].split()[0] for line in large] == ["20"]
    assert ended.err.count("hint: /compact sums up older turns; /save NAME, then /clear starts") == 1
    assert len(sent_texts(server.requests[2].json)) == 41
    assert sent_texts(server.requests[3].json) == ["1"]


def test_it_is_said_again_at_each_doubling_and_of_another_conversation(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(many(1))
    homes.save(mino.home, "long", many(5))
    (mino.home / "config.toml").write_text("warn_turns = 2")
    lines = ["2", "3", "/undo", "3", "4", "/history 1", "/undo", "4", "5", "/load long", "6", "/clear", "1", "2"]
    ended = chat(mino, *lines, "/open long", "/open long")
    large = [line.split(": ")[2].split()[0] for line in ended.err.splitlines() if "is large" in line]
    assert large == ["2", "4", "5", "2", "5", "5"]


def test_a_context_that_is_limited_is_as_large_as_what_is_sent(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(many(9))
    (mino.home / "config.toml").write_text("warn_turns = 3")
    for context, large in (("2", []), ("3", ["3"]), ("300B", []), ("50kB", ["12"])):
        ended = chat(mino, "q", words=("--context", context))
        assert [line.split(": ")[2].split()[0] for line in ended.err.splitlines()[::2]] == large


def test_a_size_is_counted_anew_for_each_question(mino: Program, server: ScriptedServer) -> None:
    chat(mino, "one", "two" * 500, "three", "four", words=("--context", "1kB"))
    texts = [sent_texts(request.json)[:-1] for request in server.requests]
    assert texts == [[], ["one", "巴黎 🗼"], [], ["three", "巴黎 🗼"]]


@pytest.mark.parametrize("said", ["exit", "quit", "/quit", " Exit ", "QUIT", "/Quit now"])
def test_other_ways_to_leave_get_a_pointer(mino: Program, server: ScriptedServer, said: str) -> None:
    ended = chat(mino, said, "/exit")
    assert ended.err == f"mino: unknown command '{said.split()[0]}'; nothing was sent\nhint: /exit leaves the chat\n"
    assert (ended.status, server.requests) == (0, [])


def test_a_question_that_begins_like_one_is_sent(mino: Program, server: ScriptedServer) -> None:
    ended = chat(mino, "exit codes of bash?", "quit smoking, how?", "exit.", "//quit", "退出")
    assert (ended.status, ended.err) == (0, "")
    asked = [sent_texts(request.json)[-1] for request in server.requests]
    assert asked == ["exit codes of bash?", "quit smoking, how?", "exit.", "/quit", "退出"]


def test_a_large_context_is_told_at_the_start_and_after_load(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(many(3))
    homes.save(mino.home, "long", many(4))
    (mino.home / "config.toml").write_text("warn_turns = 3")
    ended = chat(mino, "/load long", "/history 1")
    assert [line.split(": ")[2].split()[0] for line in ended.err.splitlines()[::2]] == ["3", "4"]
    (mino.home / "config.toml").write_text("warn_turns = 0")
    assert chat(mino, "/sessions").err == ""
    (mino.home / "config.toml").write_text("warn_turns = 3")
    assert chat(mino, "/sessions", words=("--context", "2")).err == ""  # two turns are no large context


def test_ask_tells_it_on_a_terminal_alone(mino: Program, server: ScriptedServer) -> None:
    import pty

    mino.write_session(many(19))
    assert mino.run("ask", "20").err == ""
    (mino.home / "config.toml").write_text("warn_turns = 11")

    def told(*words: str) -> str:
        master, slave = pty.openpty()
        process = mino.start("ask", *words, stderr=slave)
        assert finish(process).status == 0
        os.write(slave, b".")
        os.close(slave)
        seen = os.read(master, 65536).decode().replace("\r\n", "\n")
        os.close(master)
        return seen.removesuffix(".")

    assert told("21") == ""
    said = told("22")
    assert said.startswith(
        "mino: the context is large: 22 turns sent with every question\nhint: mino history compact sums"
    )
    # A context that stays at one size is not called large with every question.
    assert told("23") == told("--context", "11", "24") == told("--context", "1kB", "25") == ""
