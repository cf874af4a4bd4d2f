"""`mino chat` on a terminal: the line editor, what a person sees, and the keys that end it."""

import os
import signal
import threading
from collections.abc import Sequence

import pytest

from tests import homes
from tests.server import ScriptedServer, completed, delta, ended, error, events, wait_until
from tests.system.program import Program, sent_texts
from tests.system.screen import Terminal

TURN = ["user_message", "assistant_message", "completed"]
UP, LEFT, BACKSPACE, ALT_ENTER = "\x1b[A", "\x1b[D", "\x7f", "\x1b\r"
CTRL_C, CTRL_D, CTRL_R, CTRL_U = "\x03", "\x04", "\x12", "\x15"
LEFT_THE_CHAT = "mino: left the chat; the conversation is saved"
SAVED_AS_CANCELLED = "mino: left the chat; the turn is saved as cancelled"


def chat(
    mino: Program, *words: str, columns: int = 80, term: str = "xterm-256color", ignored: Sequence[signal.Signals] = ()
) -> Terminal:
    """`mino chat` at its first prompt."""
    terminal = Terminal(mino.command("chat", *words), mino.environ, columns=columns, term=term, ignored=ignored)
    terminal.wait_for("You>")
    return terminal


def said(terminal: Terminal) -> str:
    """What stands below the banner."""
    return terminal.text.partition("\n\n")[2]


def questions(server: ScriptedServer) -> list[str]:
    """What was asked, without the context."""
    return [sent_texts(request.json)[-1] for request in server.requests]


def test_a_colour_is_told_and_asked_for_after_a_restart(mino: Program) -> None:
    with ScriptedServer(completed("蓝色，记住了 🎨"), completed("蓝色。")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        with chat(mino) as terminal:
            terminal.press("我最喜欢的颜色是蓝色。\r")
            terminal.wait_for("Assistant> 蓝色，记住了 🎨\n\nYou>")
            terminal.press("/exit\r")
        assert said(terminal) == "You> 我最喜欢的颜色是蓝色。\n\nAssistant> 蓝色，记住了 🎨\n\nYou> /exit\nGoodbye."
        assert terminal.status == 0
        with chat(mino) as terminal:
            assert len(server.requests) == 1 and said(terminal) == "You>"
            terminal.press("什么颜色？\r")
            terminal.wait_for("Assistant> 蓝色。\n\nYou>")
            terminal.press(CTRL_D)
        assert (terminal.status, said(terminal).splitlines()[-2:]) == (0, ["You>", "Goodbye."])
        assert terminal.restored
    assert sent_texts(server.requests[1].json) == ["我最喜欢的颜色是蓝色。", "蓝色，记住了 🎨", "什么颜色？"]


def test_nothing_asks_the_terminal_anything(mino: Program, server: ScriptedServer) -> None:
    with chat(mino) as terminal:
        terminal.press("q\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    # A terminal answers a query as if a person typed the answer; one that does not answer gets a warning.
    assert b"\x1b[6n" not in terminal.raw and b"\x1b[c" not in terminal.raw
    assert "WARNING" not in terminal.text


# The editor


def test_what_is_pasted_is_one_question(mino: Program, server: ScriptedServer) -> None:
    text = "\n".join(f"行 {n}\tline 🐕" for n in range(200))
    with chat(mino) as terminal:
        terminal.paste(text + "\n")
        terminal.press("\r")
        terminal.wait_for("Assistant> 巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    assert questions(server) == [text]
    shown = said(terminal).splitlines()
    # All of it stands there, once, though the window has fewer lines.
    assert [line.removeprefix("You>").split() for line in shown[:201]] == [
        line.split() for line in [*text.split("\n"), ""]
    ]
    assert mino.records()[0]["text"] == text


def test_alt_enter_begins_a_new_line(mino: Program, server: ScriptedServer) -> None:
    with chat(mino) as terminal:
        terminal.press(f"第一行{ALT_ENTER}  second")
        terminal.wait_for("You> 第一行\n       second")
        terminal.press("\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    assert questions(server) == ["第一行\n  second"]


def test_wide_characters_are_edited_where_they_stand(mino: Program, server: ScriptedServer) -> None:
    with chat(mino) as terminal:
        terminal.press("你好🐕世界")
        terminal.wait_for("You> 你好🐕世界")
        terminal.press(LEFT * 2 + BACKSPACE + "x")
        terminal.wait_for("You> 你好x世界")
        terminal.press("\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    assert questions(server) == ["你好x世界"]


def test_a_narrow_window(mino: Program, server: ScriptedServer) -> None:
    with chat(mino, columns=40) as terminal:
        terminal.press("这是一个很长的问题，它会超过四十列的宽度，所以换行。🐕\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    first, second, *rest = said(terminal).splitlines()
    assert first == "You> 这是一个很长的问题，它会超过四十列"[:0] + first and first.startswith(
        "You> 这是一个很长的问题"
    )
    assert (first.removeprefix("You> ") + second.strip()) == questions(server)[0]
    assert rest == ["", "Assistant> 巴黎 🗼", "", "You>", "Goodbye."]


def test_earlier_input_comes_back_and_is_kept_in_no_file(mino: Program, server: ScriptedServer) -> None:
    with chat(mino) as terminal:
        terminal.press("/history\r")
        terminal.wait_for("there are no turns yet\n\nYou>")
        terminal.press("好\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(UP)
        terminal.wait_for("You> 好")
        terminal.press(UP)
        terminal.wait_for("You> /history")
        terminal.press("\x15" + CTRL_D)
    with chat(mino) as terminal:
        terminal.press(UP + UP + "x")
        terminal.wait_for("You> 好x")  # commands of another run are nowhere
        terminal.press("\x15" + CTRL_D)
    made = {path.name for path in mino.home.parent.rglob("*") if path.is_file()}
    assert made == {".gitignore", "sessions.lock", mino.session.name}


def recalled(terminal: Terminal, number: int) -> list[str]:
    """What the up arrow brings, the newest first; each is one line."""
    seen = []
    for _ in range(number):
        terminal.press(UP + "@")
        terminal.wait_for("@")
        seen.append(terminal.text.rpartition("You> ")[2].removesuffix("@"))
        terminal.press(BACKSPACE)
        terminal.wait_for(lambda text: not text.endswith("@"))
    terminal.press(CTRL_U)
    return seen


def test_the_up_arrow_brings_the_questions_of_the_conversation(mino: Program, server: ScriptedServer) -> None:
    lost = homes.ended(1, "f" * 32, "失败的 🐕", "failed")
    mino.write_session(homes.numbered(homes.completed(("第一行\n  second", "答"), ("/usr 是什么？", "b")), lost))
    with chat(mino, "--context", "none") as terminal:
        terminal.press(UP)
        terminal.wait_for("You> 失败的 🐕")
        terminal.press(UP)
        terminal.wait_for("You> //usr 是什么？")  # as it is typed
        terminal.press(UP)
        terminal.wait_for("You> 第一行\n       second")
        terminal.press("\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(UP * 4)  # one of them goes up a line
        terminal.wait_for("You> //usr 是什么？")
        terminal.press("\r")
        terminal.wait_for("Assistant> 巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    assert questions(server) == ["第一行\n  second", "/usr 是什么？"]


def test_the_up_arrow_follows_the_conversation(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(homes.completed(("一", "1")))
    homes.save(mino.home, "旧", homes.completed(("老问题", "a")))
    with chat(mino) as terminal:
        terminal.press("二\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press("/undo\r")
        terminal.wait_for("1 turn left\n\nYou>")
        # What was removed can be changed and asked again.
        assert recalled(terminal, 3) == ["/undo", "二", "一"]
        terminal.press("/load 旧\r")
        terminal.wait_for("loaded '旧': 1 turn\n\nYou>")
        assert recalled(terminal, 3) == ["/load 旧", "/undo", "老问题"]
        terminal.press("三\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press("/clear\r")
        terminal.wait_for("started an empty conversation\n\nYou>")
        assert recalled(terminal, 4) == ["/clear", "/load 旧", "/undo", "/undo"]  # there is nothing before it
        terminal.press("/open 旧\r")
        terminal.wait_for("opened '旧': 1 turn\n\nYou>")
        assert recalled(terminal, 5) == ["/open 旧", "/clear", "/load 旧", "/undo", "老问题"]
        terminal.press(CTRL_D)


def test_a_question_as_long_as_a_book_is_recalled(mino: Program, server: ScriptedServer) -> None:
    book = "".join(f"行 {n} 🐕\n" for n in range(2_000)) + "完"
    mino.write_session(homes.completed((book, "a"), ("短", "b")))
    with chat(mino, "--context", "none") as terminal:
        terminal.press(UP)
        terminal.wait_for("You> 短")
        terminal.press(UP)
        terminal.wait_for("完")
        terminal.press("\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    assert questions(server) == [book]


def test_tab_completes_commands_and_saved_names(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(homes.completed(("问", "答")))
    homes.save(mino.home, "北京 计划", homes.completed(("去哪里？", "北京。")))
    homes.save(mino.home, "brain", homes.completed(("a", "b")))
    with chat(mino) as terminal:
        terminal.press("/s\t")
        terminal.wait_for(lambda text: "/save" in text and "/sessions" in text and text.endswith("You> /s"))
        terminal.press("\x15/lo\t")
        terminal.wait_for("You> /load")
        terminal.press("\t")
        terminal.wait_for(lambda text: "brain" in text and "北京 计划" in text and text.endswith("You> /load"))
        terminal.press("北\t\r")
        terminal.wait_for("loaded '北京 计划': 1 turn\n\nYou>")
        terminal.press("no data\t\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    assert "You> /load 北京 计划\n" in terminal.text
    assert sent_texts(server.requests[0].json) == ["去哪里？", "北京。", "no data"]


def test_bytes_that_are_no_text_are_told_and_not_sent(mino: Program, server: ScriptedServer) -> None:
    with chat(mino) as terminal:
        terminal.press(b"caf\xe9 \r")
        terminal.wait_for(lambda text: "the question is not UTF-8: 0xe9 at byte 3" in text and text.endswith("You>"))
        terminal.press(CTRL_D)
    assert server.requests == [] and terminal.status == 0


# Waiting and answering


def test_a_waiting_sign_goes_without_a_trace(mino: Program) -> None:
    gate = threading.Event()
    with ScriptedServer(events(gate, delta("来了 🚂"), ended())) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        with chat(mino) as terminal:
            terminal.press("q\r")
            terminal.wait_for("You> q\n\nAssistant> ...")
            server.wait_for_requests(1)
            gate.set()
            terminal.wait_for("You> q\n\nAssistant> 来了 🚂\n\nYou>")
            terminal.press(CTRL_D)


def test_a_failure_takes_the_waiting_sign_away(mino: Program) -> None:
    with ScriptedServer(error(500, "busy"), error(400, "no 不")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        with chat(mino, "--retries", "1") as terminal:
            terminal.press("q\r")
            terminal.wait_for(lambda text: "no 不" in text and text.endswith("You>"))
            terminal.press(CTRL_D)
    first, empty, retry, failure, *_ = said(terminal).splitlines()
    assert (first, empty) == ("You> q", "")
    assert retry.startswith("mino: the service answered 500: busy; attempt 2 of 2 in ")
    assert failure == "mino: the service answered 400: no 不"
    assert "Assistant" not in terminal.text


def test_what_is_typed_amid_an_answer_comes_after_it(mino: Program) -> None:
    gate = threading.Event()
    with ScriptedServer(events(delta("one "), gate, delta("more"), ended()), completed("two")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        with chat(mino) as terminal:
            terminal.press("q\r")
            terminal.wait_for("Assistant> one")
            terminal.press("早 ahead\r")
            gate.set()
            terminal.wait_for("Assistant> one more\n\nYou> 早 ahead\n\nAssistant> two\n\nYou>")
            terminal.press(CTRL_D)
    assert questions(server) == ["q", "早 ahead"]


def test_control_sequences_of_an_answer_are_seen_and_not_obeyed(mino: Program) -> None:
    with ScriptedServer(completed("\x1b[2J\x1b]0;title\x07red")) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        with chat(mino) as terminal:
            terminal.press("q\r")
            terminal.wait_for("Assistant> \\x1b[2J\\x1b]0;title\\x07red\n\nYou>")
            terminal.press(CTRL_D)


# Ends


def test_ctrl_c_amid_an_answer_cancels_the_turn_and_leaves(mino: Program) -> None:
    with ScriptedServer(events(delta("半个"), threading.Event())) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        with chat(mino) as terminal:
            terminal.press("q\r")
            terminal.wait_for("Assistant> 半个")
            terminal.press(CTRL_C)
        assert server.requests[0].hung_up.wait(10)
    assert terminal.status == -signal.SIGINT
    assert terminal.raw.endswith(f"半个\r\n{SAVED_AS_CANCELLED}\r\n".encode())
    assert terminal.restored
    assert mino.types() == ["user_message", "cancelled"]


def test_ctrl_c_while_waiting_leaves_a_clean_line(mino: Program) -> None:
    with ScriptedServer(events(threading.Event())) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        with chat(mino) as terminal:
            terminal.press("q\r")
            terminal.wait_for("Assistant> ...")
            server.wait_for_requests(1)
            terminal.press(CTRL_C)
    assert terminal.status == -signal.SIGINT
    assert said(terminal) == f"You> q\n\n{SAVED_AS_CANCELLED}" and terminal.screen.column == 0
    assert mino.types() == ["user_message", "cancelled"]


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_ctrl_c_at_an_empty_prompt_leaves_and_says_so(mino: Program, server: ScriptedServer, term: str) -> None:
    with chat(mino, term=term) as terminal:
        terminal.press(CTRL_C)
    assert terminal.status == -signal.SIGINT
    assert terminal.screen.column == 0 and terminal.restored
    # In plain lines the terminal itself writes the key.
    assert said(terminal) == f"You>{'^C' if term == 'dumb' else ''}\n{LEFT_THE_CHAT}".replace("You>^C", "You> ^C")
    assert mino.records() == [] and server.requests == []


@pytest.mark.parametrize("text", ["half a question", "半个问题🐕", f"first{ALT_ENTER}second", " ", "/lo"])
def test_ctrl_c_clears_a_line_that_has_text(mino: Program, server: ScriptedServer, text: str) -> None:
    """It ended the chat without a word, and the line was lost."""
    with chat(mino) as terminal:
        terminal.press(text)
        if text.strip():
            terminal.wait_for(text.rpartition(ALT_ENTER)[2])
        terminal.press(CTRL_C)
        terminal.wait_for("You>")
        terminal.press("好\r")
        terminal.wait_for("You> 好\n\nAssistant> 巴黎 🗼\n\nYou>")
        terminal.press(UP + UP + "\r" if text == "half a question" else CTRL_D)
        if text == "half a question":
            terminal.wait_for("You> half a question\n\nAssistant> 巴黎 🗼\n\nYou>")
            terminal.press(CTRL_C)
    assert terminal.status == (-signal.SIGINT if text == "half a question" else 0)
    assert questions(server) == (["好", text] if text == "half a question" else ["好"])


def test_ctrl_c_ends_a_search_and_not_the_chat(mino: Program, server: ScriptedServer) -> None:
    with chat(mino) as terminal:
        terminal.press("北京\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press("typed")
        terminal.wait_for("You> typed")
        terminal.press(CTRL_R + "北")
        terminal.wait_for(lambda text: "I-search backward: 北" in text)
        terminal.press(CTRL_C)
        terminal.wait_for("You> typed")
        terminal.press(CTRL_C)
        terminal.wait_for("You>")
        terminal.press(CTRL_C)
    assert said(terminal).endswith(f"You>\n{LEFT_THE_CHAT}")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_the_prompt_restores_the_terminal_and_kills(
    mino: Program, server: ScriptedServer, signum: signal.Signals
) -> None:
    with chat(mino) as terminal:
        terminal.press("半")
        terminal.wait_for("You> 半")
        os.kill(terminal.pid, signum)
    assert terminal.status == -signum
    assert terminal.restored
    assert "Traceback" not in terminal.text


def test_an_ignored_sigint_ignores_ctrl_c(mino: Program, server: ScriptedServer) -> None:
    with chat(mino, ignored=[signal.SIGINT]) as terminal:
        terminal.press("x" + CTRL_C + "好\r")
        terminal.wait_for("巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    assert terminal.status == 0 and questions(server) == ["好"]


@pytest.mark.parametrize("ignored", [[], [signal.SIGHUP]])
def test_a_window_that_is_closed_ends_it(
    mino: Program, server: ScriptedServer, ignored: Sequence[signal.Signals]
) -> None:
    with chat(mino, ignored=ignored) as terminal:
        terminal.hang_up()
    # The end of input may be seen before the signal; the last line then cannot be written.
    assert terminal.status in ((74,) if ignored else (74, -signal.SIGHUP))
    assert mino.records() == []


def test_a_window_that_is_closed_amid_an_answer_cancels_the_turn(mino: Program) -> None:
    with ScriptedServer(events(delta("半个"), threading.Event())) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        with chat(mino) as terminal:
            terminal.press("q\r")
            terminal.wait_for("Assistant> 半个")
            terminal.hang_up()
    assert terminal.status in (-signal.SIGHUP, -signal.SIGPIPE)
    assert mino.types() == ["user_message", "cancelled"]


def test_a_dumb_terminal_gets_plain_lines(mino: Program, server: ScriptedServer) -> None:
    with chat(mino, term="dumb") as terminal:
        terminal.press("你好\r")
        terminal.wait_for("Assistant> 巴黎 🗼\n\nYou>")
        terminal.press(CTRL_D)
    assert said(terminal) == "You> 你好\n\nAssistant> 巴黎 🗼\n\nYou>\nGoodbye."
    assert b"\x1b" not in terminal.raw


def test_a_terminal_that_is_only_written_to_is_no_editor(mino: Program, server: ScriptedServer) -> None:
    command = ["sh", "-c", 'printf "一\\n" | "$@"', "sh", *mino.command("chat")]
    with Terminal(command, mino.environ) as terminal:
        terminal.wait_for("Goodbye.")
    assert said(terminal) == "You> 一\n\nAssistant> 巴黎 🗼\n\nYou>\nGoodbye."
    assert b"\x1b" not in terminal.raw


def test_without_a_terminal_for_the_output_the_input_is_lines(mino: Program, server: ScriptedServer) -> None:
    log = mino.home.parent / "log"
    command = ["sh", "-c", f'exec "$@" >"{log}"', "sh", *mino.command("chat")]
    with Terminal(command, mino.environ) as terminal:
        terminal.press("一\r")
        wait_until(lambda: log.exists() and log.read_text().endswith("巴黎 🗼\n\nYou> "))
        terminal.press(CTRL_D)
    assert log.read_text().endswith("You> \nAssistant> 巴黎 🗼\n\nYou> \nGoodbye.\n")
    assert terminal.status == 0 and os.path.getsize(log)
