"""A service that fails: the exit status, the sentence, and a turn that ended as failed and enters no request."""

import json
import os
import signal
import socket

import jsonschema
import pytest

from tests import homes
from tests.server import Reply, ScriptedServer, body, completed, delta, ended, error, events
from tests.system.program import ROOT, Program, sent_texts

ANSWER = json.loads((ROOT / "schemas" / "answer.v1.schema.json").read_text())
PAGE = Reply([b"<html><body>502 Bad Gateway</body></html>"], 200, {"content-type": "text/html"}, "length")


@pytest.mark.parametrize(
    ("reply", "status", "said"),
    [
        (error(400, "bad \x1b[31mrequest\nin two lines"), 69, "answered 400: bad \\x1b[31mrequest in two lines"),
        (error(401, "no"), 77, "no key was sent (401)"),
        (error(404, "no such model"), 69, "404: no such model"),
        (error(429, "no credit", code="insufficient_quota"), 69, "429: no credit"),
        (error(500, "broken 坏了", headers={"x-should-retry": "false"}), 69, "500: broken 坏了"),
        (Reply(status=302, headers={"location": "http://127.0.0.1:1/"}, ending="length"), 69, "redirects (302)"),
        (PAGE, 69, "not a Responses server"),
        (events({"type": "error", "message": "overloaded", "code": None}), 69, "overloaded"),
        (events(ended("failed", error={"code": "server_error", "message": "it fell over"})), 69, "it fell over"),
        (events(ended("completed", output=[])), 69, "empty answer"),
        (events(ended("completed", status="cancelled")), 69, "failed"),
        (events(b"data: {not json\n\n"), 69, "not an event"),
    ],
)
def test_a_failure_before_any_text(mino: Program, reply: Reply, status: int, said: str) -> None:
    with ScriptedServer(reply, completed("ok")) as server:
        failed = mino.run("ask", "q", server=server)
        assert (failed.status, failed.out) == (status, "") and said in failed.err
        assert mino.types() == ["user_message", "failed"]
        assert mino.run("ask", "again", server=server).status == 0
    assert sent_texts(server.requests[1].json) == ["again"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (events(delta("half 半"), ending="cut"), "broke off"),
        (events(delta("half 半"), ending="reset"), "broke off"),
        (events(delta("half 半")), "ended early"),
        (events(delta("half 半"), {"type": "error", "error": {"message": "gone wrong"}}), "gone wrong"),
        (events(delta("half 半"), ended("failed", error=None)), "failed"),
        (events(delta("half 半"), 20.0), "no data"),
    ],
)
def test_a_failure_after_some_text(mino: Program, reply: Reply, said: str) -> None:
    with ScriptedServer(reply) as server:
        failed = mino.run("ask", "--timeout", "0.5", "q", server=server)
    assert (failed.status, failed.out) == (69, "half 半\n") and said in failed.err
    assert mino.types() == ["user_message", "failed"]
    assert len(server.requests) == 1  # nothing is asked again once something was shown


def test_with_json_a_broken_stream_is_asked_again(mino: Program) -> None:
    with ScriptedServer(events(delta("half"), ending="cut"), error(400, "no"), always=completed("ok")) as server:
        failed = mino.run("ask", "--json", "q", server=server)
        assert (failed.status, failed.json["text"], failed.json["error"]["http_status"]) == (69, "", 400)
        # Nothing was shown before the stream broke, so it was tried again; the second failure ended it.
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("reply", "status", "text", "known"),
    [
        (error(401, "no"), 77, "", (401, None)),
        (error(429, "slow", headers={"retry-after": "900"}), 69, "", (429, 900)),
        (error(503, "busy"), 69, "", (503, None)),
        (events(delta("半"), ended("failed", error={"message": "Sorry"})), 69, "半", (None, None)),
        (events(delta("半"), ending="cut"), 69, "半", (None, None)),
        (events(delta("半"), 20.0), 69, "半", (None, None)),
        (events(ended(output=[])), 69, "", (None, None)),
        (body(b"<html>", "text/html"), 69, "", (None, None)),
    ],
)
def test_with_json_a_failure_of_the_service_is_an_object(
    mino: Program, reply: Reply, status: int, text: str, known: tuple[int | None, float | None]
) -> None:
    mino.environ["OPENAI_API_KEY"] = "sk-1"
    with ScriptedServer(reply) as server:
        failed = mino.run("ask", "--json", "--retries", "0", "--timeout", "0.5", "q", server=server)
    jsonschema.validate(failed.json, ANSWER)
    assert failed.status == status
    said = failed.json["error"]
    assert (said["http_status"], said["retry_after"]) == known and f"mino: {said['message']}\n" in failed.err
    assert (failed.json["status"], failed.json["text"], failed.json["output"]) == ("failed", text, [])
    assert failed.json["turn_id"] == mino.records()[0]["turn_id"] and mino.types() == ["user_message", "failed"]


def test_with_json_what_is_no_failure_of_the_service_prints_nothing(mino: Program) -> None:
    nowhere = ("--base-url", "http://127.0.0.1:9/v1", "--retries", "0")
    assert mino.run("ask", "--json", *nowhere, "q").json["error"]["http_status"] is None
    for words, status in ((["--base-url", "ftp://x"], 78), (["--wait", "x"], 2), (["--instructions", "none"], 66)):
        ended = mino.run("ask", "--json", *words, "q")
        assert (ended.status, ended.out) == (status, "")
    mino.session.write_bytes(b"}\n" + mino.session.read_bytes())
    damaged = mino.run("ask", "--json", *nowhere, "q")
    assert (damaged.status, damaged.out) == (65, "")


def test_no_server_is_there(mino: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    failed = mino.run("ask", "--retries", "1", "--base-url", f"http://127.0.0.1:{port}/v1", "q")
    assert failed.status == 69 and "cannot connect" in failed.err and str(port) in failed.err
    assert mino.types() == ["user_message", "failed"]


def test_a_busy_server_is_asked_again(mino: Program) -> None:
    busy = error(503, "busy", headers={"retry-after-ms": "1"})
    with ScriptedServer(busy, busy, completed("at last")) as server:
        answer = mino.run("ask", "q", server=server)
    assert (answer.status, answer.out, answer.err) == (0, "at last\n", "")
    assert len({json.dumps(request.json) for request in server.requests}) == 1
    assert mino.types() == ["user_message", "assistant_message", "completed"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["nonsense"], "mino --help"),
        (["ask", "-m"], "--help"),
        (["history", "nonsense"], "mino history --help"),
        (["ask", "--tiemout", "3", "q"], "did you mean --timeout?"),
        (["ask", "--retry", "3", "q"], "did you mean --retries?"),
        # Nearly as many letters are equal as in those two, and it is not what anybody meant.
        (["--versatile"], "did you mean --version?"),
        (["history", "export", "--foo"], "mino history export --help"),
        (["session", "list", "--session", "x"], "mino session list --help"),
        (["--session", "x", "session", "list"], "mino session list --help"),
    ],
)
def test_a_usage_mistake_is_two_lines(mino: Program, words: list[str], hint: str) -> None:
    mistake = mino.run(*words)
    assert (mistake.status, mistake.out) == (2, "") and len(mistake.err.splitlines()) == 2
    assert mistake.err.splitlines()[1].endswith(hint)


@pytest.mark.parametrize(
    "words", [["--version"], ["-h"], ["ask", "--help"], ["history", "verify", "-h"], [], ["history"]]
)
def test_a_help_text_is_an_answer(mino: Program, words: list[str]) -> None:
    helped = mino.run(*words)
    assert (helped.status, helped.err) == (0, "") and helped.out
    with open("/dev/full", "wb") as full:
        lost = mino.run(*words, stdout=full)
    assert lost.status == 74 and "No space left" in lost.err


def test_a_shell_completes_words(mino: Program) -> None:
    script = mino.run(env={"_MINO_COMPLETE": "bash_source"})
    assert (script.status, script.err) == (0, "") and "_mino_completion" in script.out
    words = mino.run(env={"_MINO_COMPLETE": "bash_complete", "COMP_WORDS": "mino history ver", "COMP_CWORD": "2"})
    assert (words.status, words.out, words.err) == (0, "plain,verify\n", "")


def test_a_help_text_for_a_reader_that_is_gone_dies_by_the_signal(mino: Program) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = mino.run("--help", stdout=writer)
    os.close(writer)
    assert (ended.status, ended.err) == (-signal.SIGPIPE, "")


TOO_LONG = error(400, "no", code="context_length_exceeded")


@pytest.mark.parametrize(("turns", "hint"), [(0, None), (1, "none"), (4, "2"), (25, "10")])
def test_fewer_turns_are_recommended_only_where_there_are_turns(mino: Program, turns: int, hint: str | None) -> None:
    if turns:
        mino.write_session(homes.completed(*((f"q{n}", "a") for n in range(turns))))
    with ScriptedServer(TOO_LONG, completed("short")) as server:
        failed = mino.run("ask", "q", server=server)
        assert failed.status == 69
        assert "too long" in failed.err
        if hint is None:
            assert "--context" not in failed.err
        else:
            assert f"--context {hint} " in failed.err
            assert mino.run("ask", "--context", hint, "q", server=server).out == "short\n"


def test_chat_recommends_a_command_of_its_own(mino: Program) -> None:
    with ScriptedServer(TOO_LONG, completed("one"), TOO_LONG, completed("two")) as server:
        chat = mino.run("chat", stdin=b"q1\nq2\nq3\n/clear\nq4\n", server=server)
    first, second = chat.err.split("too long for the model")[1:]
    assert "/clear" not in first
    assert "/clear" in second
    assert "--context" not in chat.err and "mino session" not in chat.err
    assert "two" in chat.out


def test_web_page_of_a_base_url_that_ends_in_the_path_of_a_request(mino: Program) -> None:
    with ScriptedServer(PAGE, error(404, "no")) as server:
        for _ in range(2):
            failed = mino.run("ask", "--base-url", f"{server.url}/responses", "q")
            assert failed.err.endswith(f": --base-url {server.url}\n")


def test_a_conversation_outlives_a_server_that_refuses_every_old_item(mino: Program) -> None:
    """The wording is of a server that no list of wordings knew."""
    refusal = {"error": {"code": "invalid_prompt", "message": "Invalid Responses API request"}}
    refused = Reply([json.dumps(refusal).encode()], 400, {"content-type": "application/json"}, "length")
    with ScriptedServer(completed("one"), refused, refused, refused, completed("two"), always=refused) as server:
        assert mino.run("ask", "q1", server=server).out == "one\n"
        second = mino.run("ask", "q2", server=server)
        assert (second.status, second.out) == (0, "two\n")
        assert 'replay = "text"' in second.err
        third = mino.run("ask", "q3", server=server)
    assert third.status == 69
    assert "Invalid Responses API request; the simpler forms of earlier answers were refused too\n" in third.err
    assert "replay" not in third.err
