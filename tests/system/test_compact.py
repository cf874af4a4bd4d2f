"""`mino history compact` and `/compact`: what is sent, what is on disk afterwards, and every way to fail."""

import os
import pty
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from mino.commands.compact import TASK
from mino.sessions.compact import is_summary
from tests.engine import needs_engine
from tests.homes import completed as journal
from tests.homes import ended as ended_turn
from tests.homes import numbered, questions, save, saved_in, session_of, turns_of
from tests.server import (
    Reply,
    ScriptedServer,
    answer_events,
    completed,
    delta,
    ended,
    error,
    events,
    message,
    wait_until,
)
from tests.system.program import Ended, Program, finish, limited, sent_texts

SIX = journal(*((f"问题 {n}", f"答案 {n} 🙂") for n in range(1, 7)))
FAILED = ended_turn(1, "0193a0b1c2d3700080000000000000f1", "never answered", "failed")
SUMMARY = "用户问了问题 1 和 2。🙂\n\n```sh\nls\n```"
AS_IT_WAS = "the conversation is as it was"
TOO_LONG = error(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded")
REFUSAL = {
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "refusal", "refusal": "I will not\nsum this up"}],
}


def compact(mino: Program, *words: str, server: ScriptedServer | None = None, **more: Any) -> Ended:
    """Run `mino history compact`."""
    return mino.run("history", "compact", *words, server=server, **more)


def copies(mino: Program) -> list[bytes]:
    """The content of all saved conversations."""
    return list(saved_in(mino.home).values())


def test_the_next_question_is_sent_with_the_summary_and_the_kept_turns(mino: Program) -> None:
    items = [{"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "opaque"}, message("答 0 🗼")]
    with ScriptedServer(completed("答 0 🗼", output=items), completed(SUMMARY), completed("next")) as server:
        mino.write_session(SIX)
        (mino.home / "SOUL.md").write_text("You are a pirate.")
        assert mino.run("ask", "新问题", server=server).status == 0
        before = session_of(mino.home)

        done = compact(mino, "--keep", "5", "-m", "m-2", server=server)

        after = session_of(mino.home)
        (copy,) = saved_in(mino.home)
        assert (done.status, done.out) == (0, "")
        assert done.err == (
            f"mino: the whole conversation is saved as '{copy}'\n"
            f"mino: 2 turns became a summary, 5 follow: {len(after)} bytes instead of {len(before)}\n"
        )
        assert copy.startswith("auto-") and copies(mino) == [before]
        assert mino.run("ask", "下一个", server=server).status == 0

    asked, following = server.requests[1].json, server.requests[2].json
    assert sent_texts(asked) == ["问题 1", "答案 1 🙂", "问题 2", "答案 2 🙂", TASK]
    assert asked["model"] == "m-2" and "instructions" not in asked and asked["store"] is False
    first, *rest = turns_of(after)
    assert (first.assistant, first.output) == (SUMMARY, None) and is_summary(first.user)
    assert following["instructions"] == "You are a pirate."
    said = {"type": "input_text", "text": first.user}
    assert following["input"][0] == {"type": "message", "role": "user", "content": [said]}
    assert [part["text"] for part in following["input"][1]["content"]] == [SUMMARY]
    assert following["input"][1]["role"] == "assistant"
    # The rest is what it was, ids and items included.
    assert following["input"][2:-1] == server.requests[0].json["input"][4:] + items
    assert [turn.turn_id for turn in rest] == [turn.turn_id for turn in turns_of(before)[2:]]
    assert mino.run("history", "verify", "-q").status == 0


def test_a_person_at_a_terminal_sees_what_is_waited_for(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(SIX)
    master, slave = pty.openpty()
    process = mino.start("history", "compact", "-m", "m-2", stderr=slave)
    os.close(slave)
    assert finish(process).status == 0
    assert os.read(master, 65536).decode().startswith("mino: asking m-2 to sum up 2 turns\r\nmino: the whole ")
    os.close(master)


def test_what_was_saved_can_be_loaded_again(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(SIX)
    assert compact(mino).status == 0
    assert len(questions(session_of(mino.home))) == 5  # 4 are kept without --keep
    (copy,) = saved_in(mino.home)
    assert mino.run("session", "load", copy).status == 0
    assert session_of(mino.home) == SIX


def test_a_second_compact_sums_up_the_summary_too(mino: Program) -> None:
    mino.write_session(SIX)
    with ScriptedServer(completed("first summary"), completed("second summary")) as server:
        assert compact(mino, "--keep", "4", server=server).status == 0
        assert compact(mino, "--keep", "0", server=server).status == 0
        alone = compact(mino, "--keep", "0", server=server)
    assert sent_texts(server.requests[1].json)[1] == "first summary"
    assert len(sent_texts(server.requests[1].json)) == 11
    (turn,) = turns_of(session_of(mino.home))
    assert (turn.assistant, turn.user.splitlines()[0]) == ("second summary", "Summary: 问题 1")
    assert (alone.status, alone.err) == (0, "mino: there is nothing to sum up; nothing was sent\n")
    assert len(server.requests) == 2


def test_failed_turns_between_go_and_those_after_stay(mino: Program, server: ScriptedServer) -> None:
    late = FAILED.replace(b"f1", b"f2").replace(b"never answered", "没有回答".encode())
    mino.write_session(numbered(FAILED, SIX[: SIX.index(b'{"v":1,"seq":7')], late, SIX[SIX.index(b'{"v":1,"seq":7') :]))
    assert compact(mino).status == 0
    summary, *rest = questions(session_of(mino.home))
    assert is_summary(summary) and rest == ["没有回答", *(f"问题 {n}" for n in range(3, 7))]
    assert sent_texts(server.requests[0].json)[:-1] == ["问题 1", "答案 1 🙂", "问题 2", "答案 2 🙂"]


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        (SIX, ["--keep", "6"], "there is nothing to sum up before the last 6 completed turns; nothing was sent"),
        (SIX, ["--keep", "9" * 40], f"before the last {'9' * 40} completed turns; nothing was sent"),
        (b"", [], "there is nothing to sum up before the last 4 completed turns; nothing was sent"),
        (FAILED, ["--keep", "0"], "there is nothing to sum up; nothing was sent"),
        (None, [], "there is no conversation yet"),
    ],
)
def test_nothing_to_sum_up_needs_no_key_and_sends_nothing(
    mino: Program, content: bytes | None, words: list[str], said: str
) -> None:
    if content is not None:
        mino.write_session(content)
    done = compact(mino, *words)  # neither a key nor a server
    assert (done.status, done.out, done.err.count("\n")) == (0, "", 1)
    assert said in done.err
    assert not copies(mino)
    assert content is None or session_of(mino.home) == content


def test_a_named_conversation_is_compacted_and_no_other(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(SIX)
    save(mino.home, "工作 🛠", SIX)
    save(mino.home, "same", SIX)
    done = compact(mino, "--session", "工作 🛠")
    assert done.status == 0 and "is already saved as 'same'" in done.err
    assert session_of(mino.home) == saved_in(mino.home)["same"] == SIX
    assert len(questions(saved_in(mino.home)["工作 🛠"])) == 5
    assert compact(mino, "--session", "没有").status == 66
    assert saved_in(mino.home).keys() == {"工作 🛠", "same"}


@pytest.mark.parametrize(
    "words", [["--keep", "-1"], ["--keep", "x"], ["--context", "2"], ["x"], ["--instructions", "f"]]
)
def test_wrong_usage(mino: Program, words: list[str]) -> None:
    mino.write_session(SIX)
    assert compact(mino, *words).status == 2
    assert session_of(mino.home) == SIX


# Failures: the conversation is as it was


@pytest.mark.parametrize(
    ("reply", "status", "said"),
    [
        (error(500, "broken inside"), 69, "broken inside"),
        (error(401, "bad key"), 77, "bad key"),
        (TOO_LONG, 69, "hint: --keep 5 sums up fewer turns"),
        (events(delta("half a "), ending="cut"), 69, "broke off"),
        (events(delta("half"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"})), 3, AS_IT_WAS),
        (events(*answer_events("a")[:2], ended("failed", error={"code": "x", "message": "died"})), 69, "died"),
        (completed("", output=[]), 69, "an empty answer"),
        (completed(" \n\t", output=[]), 69, "an empty answer"),
        (completed("", output=[REFUSAL]), 69, f"the model refused to sum up: 'I will not sum this up'; {AS_IT_WAS}"),
        (Reply([b"<html>"], 200, {"content-type": "text/html"}), 69, ""),
    ],
)
def test_without_a_whole_summary_nothing_changes(mino: Program, reply: Reply, status: int, said: str) -> None:
    mino.write_session(SIX)
    with ScriptedServer(always=reply) as server:
        done = compact(mino, "--retries", "0", server=server)
    assert (done.status, done.out) == (status, "")
    assert said in done.err
    assert session_of(mino.home) == SIX
    assert not copies(mino)


def test_too_long_a_part_is_halved_until_it_cannot_be(mino: Program) -> None:
    mino.write_session(SIX)
    with ScriptedServer(TOO_LONG, TOO_LONG, TOO_LONG, completed("s"), TOO_LONG) as server:
        hints = [compact(mino, "--keep", keep, server=server).err.splitlines()[-1] for keep in ("0", "3", "5")]
        assert hints == [
            "hint: --keep 3 sums up fewer turns",
            "hint: --keep 4 sums up fewer turns",
            "hint: -m NAME asks a model that takes more",
        ]
        assert compact(mino, "--keep", "5", server=server).status == 0
        # A summary and one turn: half of that would be the summary alone.
        assert compact(mino, "--keep", "4", server=server).err.endswith("hint: -m NAME asks a model that takes more\n")


def test_no_key_and_no_server(mino: Program) -> None:
    mino.write_session(SIX)
    assert compact(mino).status == 78
    with ScriptedServer() as server:
        url = server.url
    assert compact(mino, "--base-url", url, "--retries", "0").status == 69
    assert session_of(mino.home) == SIX and not copies(mino)


def test_items_that_the_server_refuses_go_in_a_simpler_form(mino: Program) -> None:
    items = [{"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "opaque"}, message("A")]
    refused = error(400, "invalid_encrypted_content")
    with ScriptedServer(completed("A", output=items), refused, completed("s")) as server:
        assert mino.run("ask", "q", server=server).status == 0
        assert compact(mino, "--keep", "0", server=server).status == 0
    assert sent_texts_of(server.requests[2].json) == ["q", "A", TASK]
    assert turns_of(session_of(mino.home))[0].assistant == "s"


def sent_texts_of(body: Any) -> list[str]:
    """The texts of the messages in a request."""
    return [item["content"][0]["text"] for item in body["input"] if item["type"] == "message"]


@pytest.mark.parametrize("size", [8_000, 25_000])
def test_a_full_disk_while_the_copy_or_the_new_file_is_written(
    mino: Program, server: ScriptedServer, size: int
) -> None:
    """The first limit stops the copy of 20 kB, the second lets it pass: the new file, with its summary, is larger."""
    whole = journal(("长 " * 2500, "a"), ("b" * 10_000, "c"))
    assert 17_000 < len(whole) < 25_000
    mino.write_session(whole)
    with ScriptedServer(completed("long summary " * 2000)) as server:
        done = compact(mino, "--keep", "1", server=server, prefix=limited(size))
    assert done.status == 74 and "File too large" in done.err
    assert session_of(mino.home) == whole
    assert copies(mino) == ([] if size == 8_000 else [whole])
    assert not list(mino.home.rglob(".mino-*"))


def test_a_conversation_in_use(mino: Program, server: ScriptedServer) -> None:
    mino.write_session(SIX)
    chat = mino.start("chat", stdin=subprocess.PIPE)
    wait_until(lambda: (mino.home / "sessions.lock").exists() and bool((mino.home / "sessions.lock").read_bytes()))
    busy = compact(mino)
    assert busy.status == 75 and f"process {chat.pid}" in busy.err
    assert session_of(mino.home) == SIX
    finish(chat, b"/exit\n")
    assert compact(mino, "--wait", "1").status == 0


def test_a_file_replaced_meanwhile_is_left_alone(mino: Program) -> None:
    mino.write_session(SIX)
    other = journal(("someone else's", "file"))

    def reply(_request: object) -> Reply:
        new = mino.home / "new"
        new.write_bytes(other)
        new.chmod(0o600)
        new.rename(mino.session)
        return completed("s")

    with ScriptedServer(reply) as server:
        done = compact(mino, server=server)
    assert done.status == 74 and "was replaced by another file" in done.err
    assert session_of(mino.home) == other
    assert copies(mino) == [SIX]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_while_the_model_answers(mino: Program, signum: int) -> None:
    mino.write_session(SIX)
    gate = threading.Event()
    with ScriptedServer(events(*answer_events("half a summary")[:-1], gate)) as server:
        process = mino.start("history", "compact", server=server)
        server.wait_for_requests(1)
        process.send_signal(signum)
        done = finish(process)
        assert signum == signal.SIGKILL or server.requests[0].hung_up.wait(5)  # the kernel resets that connection
        gate.set()
    assert (done.status, done.out, done.err) == (-signum, "", "")
    assert session_of(mino.home) == SIX and not copies(mino)
    with ScriptedServer(completed("s")) as server:
        assert compact(mino, server=server).status == 0


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("step", ["create", "replace"])
def test_a_signal_while_it_is_written_waits(mino: Program, tmp_path: Path, signum: int, step: str) -> None:
    """`disk` sends the signal to its own process, before each file is made, or after each rename."""
    mino.write_session(SIX)
    (tmp_path / "sitecustomize.py").write_text(f"""
import os
from mino import disk
before = disk.{step}
def after(*arguments):
    if {step == "create"}:
        os.kill(os.getpid(), {signum})
    result = before(*arguments)
    os.kill(os.getpid(), {signum})
    return result
disk.{step} = after
""")
    mino.environ["PYTHONPATH"] += f":{tmp_path}"
    with ScriptedServer(completed(SUMMARY)) as server:
        done = compact(mino, server=server)
    assert done.status == -signum
    assert "2 turns became a summary, 4 follow" in done.err  # what was done is reported all the same
    assert len(questions(session_of(mino.home))) == 5 and copies(mino) == [SIX]


def test_a_reader_that_goes_ends_it(mino: Program) -> None:
    mino.write_session(SIX)
    gate = threading.Event()
    with ScriptedServer(Reply(before=[gate])) as server:
        process = mino.start("history", "compact", server=server)
        server.wait_for_requests(1)
        assert process.stdout
        process.stdout.close()
        assert process.wait(20) == -signal.SIGPIPE
        gate.set()
    assert session_of(mino.home) == SIX and not copies(mino)


# In chat


def chat(mino: Program, *lines: str, server: ScriptedServer, words: tuple[str, ...] = ()) -> Ended:
    """Say these lines to `mino chat`."""
    return mino.run("chat", *words, stdin="".join(f"{line}\n" for line in lines).encode(), server=server)


def test_the_chat_goes_on_with_the_new_context(mino: Program) -> None:
    mino.write_session(SIX)
    with ScriptedServer(completed(SUMMARY), completed("next"), completed("again"), completed("last")) as server:
        done = chat(mino, "/compact", "下一个", "/compact 0", "/compact 0", "最后", server=server)
    assert (done.status, done.err) == (0, "")
    assert "2 turns became a summary, 4 follow: " in done.out
    assert "6 turns became a summary, 0 follow: " in done.out
    assert "there is nothing to sum up; nothing was sent\n" in done.out
    assert "the whole conversation is saved as 'auto-" in done.out
    assert sent_texts(server.requests[0].json)[-1] == sent_texts(server.requests[2].json)[-1] == TASK
    assert sent_texts(server.requests[1].json)[1:3] == [SUMMARY, "问题 3"]
    assert sent_texts(server.requests[3].json)[1:] == ["again", "最后"]
    assert len(copies(mino)) == 2 and SIX in copies(mino)


def test_the_whole_is_summed_up_whatever_the_context_of_the_chat(mino: Program) -> None:
    mino.write_session(SIX)
    with ScriptedServer(completed(SUMMARY), completed("next")) as server:
        done = chat(mino, "/compact 1", "下一个", server=server, words=("--context", "1"))
    assert done.status == 0
    assert len(sent_texts(server.requests[0].json)) == 11
    assert sent_texts(server.requests[1].json) == ["问题 6", "答案 6 🙂", "下一个"]


def test_a_failure_leaves_the_chat_going_on(mino: Program) -> None:
    mino.write_session(SIX)
    cut = events(delta("half"), ended("incomplete"))
    with ScriptedServer(TOO_LONG, cut, completed("", output=[REFUSAL]), completed("next")) as server:
        done = chat(mino, "/compact 2", "/compact", "/compact 2", "/compact x", "下一个", server=server)
    assert done.status == 0  # no question failed
    assert "hint: /compact 4 sums up fewer turns\n" in done.err
    assert f"cut the summary short: no reason given; {AS_IT_WAS}\n" in done.err
    assert f"the model refused to sum up: 'I will not sum this up'; {AS_IT_WAS}\n" in done.err
    assert "mino: 'x' is not a number of turns\nhint: /compact [N]\n" in done.err
    assert len(sent_texts(server.requests[3].json)) == 13
    assert session_of(mino.home).startswith(SIX) and not copies(mino)


def test_an_interrupted_chat_says_what_became_of_the_conversation(mino: Program) -> None:
    mino.write_session(SIX)
    gate = threading.Event()
    with ScriptedServer(Reply(before=[gate])) as server:
        process = mino.start("chat", server=server, stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(b"/compact\n")
        process.stdin.flush()
        server.wait_for_requests(1)
        process.send_signal(signal.SIGINT)
        done = finish(process)
        gate.set()
    assert (done.status, done.err) == (-signal.SIGINT, f"mino: left the chat; {AS_IT_WAS}\n")
    assert session_of(mino.home) == SIX and not copies(mino)


# A real model


@needs_engine
def test_the_embedded_model_sums_up(mino: Program) -> None:
    mino.write_session(
        journal(
            ("What is the capital of France?", "The capital of France is Paris."),
            ("And of Italy?", "The capital of Italy is Rome."),
            ("Thanks.", "You are welcome."),
        )
    )
    done = compact(mino, "--local", "--keep", "1")
    assert done.status == 0, done.err
    summary, kept = turns_of(session_of(mino.home))
    assert summary.assistant and summary.assistant.strip() and kept.user == "Thanks."
    assert mino.run("ask", "--local", "Which capitals did we talk about?").status == 0
