"""The key goes to the server and nowhere else: into no message, no repr, no other origin; netrc never replaces it."""

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

from mino.errors import AccessRefused, MinoError, Misconfigured
from mino.responses.server import Server, check_key
from tests.server import Reply, ScriptedServer, completed, delta, ended, error, events, item_done, json_reply
from tests.unit.responses.asking import SOURCE, ask, client, put, request
from tests.unit.responses.test_client_ladder import CONTEXT

KEY = "sk-very-secret-0123456789"


def test_key_is_sent_as_a_bearer_token() -> None:
    with ScriptedServer(completed("hi")) as server:
        ask(server, key=KEY)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", [None, ""])
def test_no_key_no_header(key: str | None) -> None:
    with ScriptedServer(completed("hi")) as server:
        assert ask(server, key=key).text == "hi"
        assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("with_key", [True, False])
@pytest.mark.parametrize("variable", ["HOME", "NETRC"])
def test_netrc_never_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, with_key: bool
) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login bob password hunter2\ndefault login eve password pw\n")
    netrc.chmod(0o600)
    monkeypatch.setenv(variable, str(tmp_path if variable == "HOME" else netrc))
    with ScriptedServer(completed("hi")) as server:
        ask(server, key=KEY if with_key else None)
        assert server.requests[0].headers.get("authorization") == (f"Bearer {KEY}" if with_key else None)


REPEATS: dict[str, Reply] = {
    "error body": error(400, f"your key {KEY} is bad"),
    "401": error(401, f"Incorrect API key provided: {KEY}"),
    "404": error(404, KEY),
    "plain text": Reply([f"no {KEY}".encode()], 500),
    "request id": error(400, "no", headers={"x-request-id": KEY}),
    "content type": Reply([b"<p>hi"], headers={"content-type": f"text/{KEY}"}),
    "error code": json_reply({"error": {"code": KEY}}, 400),
    "no Responses server": Reply([KEY.encode()], headers={"content-type": "text/plain"}),
    "error event": events({"type": "error", "message": f"bad {KEY}"}),
    "data that is no JSON": events(f"data: {KEY}\n\n".encode()),
    "redirect": Reply([], 302, {"location": f"https://elsewhere.invalid/{KEY}"}),
    "context overflow": error(400, f"context length {KEY}"),
}


@pytest.mark.parametrize("row", REPEATS)
def test_key_that_the_server_repeats_is_not_shown(row: str) -> None:
    with ScriptedServer(REPEATS[row]) as server:
        outcome = ask(server, key=KEY)
    assert outcome.error
    assert "[key]" in outcome.message
    said = "".join(traceback.format_exception(outcome.error)) + outcome.error.hint
    assert "very-secret" not in said


def test_key_in_the_reason_of_a_cut_answer_is_not_shown() -> None:
    details = {"incomplete_details": {"reason": f"no more for {KEY}"}}
    with ScriptedServer(events(delta("hi"), ended("incomplete", **details))) as server:
        answer = ask(server, key=KEY).answer
    assert answer and answer.reason == "no more for [key]"


@pytest.mark.parametrize("said", [[delta("hi")], []])
def test_key_in_the_name_of_a_function_is_not_shown(said: list[Any], capfd: pytest.CaptureFixture[str]) -> None:
    call = {"type": "function_call", "name": "x" * 70 + KEY, "call_id": "c", "arguments": "{}"}
    with ScriptedServer(events(*said, item_done(call, 1), ended())) as server:
        outcome = ask(server, key=KEY)
    told = outcome.message if outcome.error else capfd.readouterr().err
    assert "[key]" in told and KEY[:9] not in told


def test_key_is_not_in_the_notice_of_the_ladder(capfd: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(error(400, f"unknown content type: {KEY}"), completed("hi")) as server:
        put(client(server, key=KEY), request(context=CONTEXT))
    written = capfd.readouterr().err
    assert "[key]" in written
    assert KEY not in written


def test_key_in_an_answer_is_the_users_own() -> None:
    with ScriptedServer(completed(f"You wrote {KEY}")) as server:
        assert ask(server, key=KEY).text == f"You wrote {KEY}"


def test_key_is_in_no_repr_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = Server("http://127.0.0.1:1/v1", KEY, SOURCE, 1, 0)
    with ScriptedServer(completed("hi")) as scripted:
        asked = client(scripted, key=KEY)
        ask(scripted, key=KEY)
    assert KEY not in repr(server) + repr(asked) + str(server) + caplog.text


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("sk-secret\nsk-other", "more than one line"),
        ("sk-secret\r\nX-Evil: 1", "more than one line"),
        ("sk-secret other", "white space"),
        ("sk-secret\tother", "white space"),
        ("sk-secret\u00a0other", "white space"),
        ("sk-secret-ключ", "a character that a key cannot have"),
        ("sk-secret-密钥", "a character that a key cannot have"),
        ("sk-secret-😀", "a character that a key cannot have"),
        ("sk-secret\0", "a character that a key cannot have"),
        ("sk-secret\x1b[0m", "a character that a key cannot have"),
        ("sk-secret\ud83d", "a character that a key cannot have"),
    ],
)
def test_key_that_no_header_can_hold(key: str, what: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        client("http://127.0.0.1:1/v1", key=key)
    assert what in caught.value.message
    assert SOURCE in caught.value.message
    assert "secret" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("key", ["sk-proj-A_b-C.d~e+f/g==", "x", "kéy"])
def test_key_that_a_header_can_hold(key: str) -> None:
    assert check_key(key, SOURCE) == key
    with ScriptedServer(completed("hi")) as server:
        assert ask(server, key=key).text == "hi"
        assert server.requests[0].headers["authorization"] == f"Bearer {key}"


def test_redirect_to_another_origin_never_carries_it() -> None:
    with ScriptedServer(completed("stolen")) as other:
        for status in (301, 302, 303, 307, 308):
            with ScriptedServer(Reply([], status, {"location": f"{other.url}/responses"})) as server:
                outcome = ask(server, key=KEY)
                assert "the conversation is not sent there" in outcome.message
        assert other.connections == 0


def test_refused_key_is_an_access_error() -> None:
    with ScriptedServer(error(401, "bad")) as server:
        outcome = ask(server, key=KEY)
    assert isinstance(outcome.error, AccessRefused)
    assert isinstance(outcome.error, MinoError)
    assert outcome.error.status == 77


def test_plain_http_that_is_not_loopback_gets_one_warning(capfd: pytest.CaptureFixture[str]) -> None:
    # 0.0.0.0 is no loopback address by its looks, and reaches this machine all the same.
    with ScriptedServer(completed("hi"), completed("hi"), completed("hi"), host="0.0.0.0") as server:
        asked = client(server, key=KEY)
        for _ in range(2):
            assert asked.ask(request(), None).text == "hi"
        assert ask(server, key=None).text == "hi"
        [line] = capfd.readouterr().err.splitlines()
        assert line == f"mino: the key and the conversation go to '{server.url}/responses' unencrypted"


def test_plain_http_on_loopback_gets_none(capfd: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(completed("hi"), completed("hi")) as server:
        ask(server, key=KEY)
        ask(f"http://localhost:{server.port}/v1", key=KEY)
    assert capfd.readouterr().err == ""


def test_shown_text_before_an_error_stays() -> None:
    with ScriptedServer(events(delta("hi"), {"type": "error", "message": KEY})) as server:
        outcome = ask(server, key=KEY)
    assert (outcome.shown, outcome.message) == ("hi", "the service failed: [key]")
