"""The replay ladder over real HTTP: one step at a time, only where it may help, never by changing what is stored."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from mino.responses.request import MESSAGES_ONLY, PLAIN_TEXT, WITHOUT_IDS
from tests.server import (
    Recorded,
    Reply,
    ScriptedServer,
    body,
    completed,
    delta,
    ended,
    error,
    events,
    json_reply,
    message,
)
from tests.unit.responses.asking import client, put, request
from tests.unit.responses.test_failure import REFUSED_ITEMS


@dataclass
class Turn:
    user: str
    assistant: str | None
    output: list[dict[str, Any]] | None
    input: list[dict[str, Any]] | None = None


REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CONTEXT = [Turn("1?", "one", [REASONING, message("one", "msg_1")])]
EXPLAINED: list[Reply] = [
    error(400, "The model `m` does not exist or you do not have access to it.", code="model_not_found"),
    error(400, "Invalid API key", code="invalid_api_key"),
    error(400, "no", code="insufficient_quota"),
    error(400, "no", param="store"),
    error(400, "Unsupported parameter: 'stream' is not supported with this model."),
    json_reply({"detail": [{"loc": ["body", "model"], "msg": "unknown"}]}, 422),
    error(404, "Not Found"),
    events(ended("failed", error={"code": "server_error", "message": "Sorry"})),
]
NOT_FOUND = "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."


def steps(server: ScriptedServer) -> list[str]:
    """What each request replayed, in short."""
    return [_step(asked) for asked in server.requests]


def _step(asked: Recorded) -> str:
    items = [item for item in asked.json["input"] if item.get("role") != "user"]
    if any("id" in item for item in items):
        return "as received"
    if any(isinstance(item["content"], str) for item in items if item["type"] == "message"):
        return "plain text"
    return "without ids" if any(item["type"] == "reasoning" for item in items) else "messages only"


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("words", REFUSED_ITEMS)
def test_each_refusal_of_an_item_takes_the_next_step(words: str, status: int) -> None:
    with ScriptedServer(error(status, words), completed("hi")) as server:
        assert put(client(server), request(context=CONTEXT)).text == "hi"
        assert steps(server) == ["as received", "without ids"]


def test_one_step_at_a_time_to_the_last() -> None:
    refusals = [error(404, NOT_FOUND), error(400, "unknown content type: x"), error(422, "Field required")]
    with ScriptedServer(*refusals, completed("hi")) as server:
        assert put(client(server), request(context=CONTEXT)).text == "hi"
        assert steps(server) == ["as received", "without ids", "messages only", "plain text"]
        assert server.requests[3].json["input"][1] == {"type": "message", "role": "assistant", "content": "one"}


WORDINGS: list[Reply] = [
    json_reply({"error": {"code": "invalid_prompt", "message": "Invalid Responses API request"}}, 400),
    json_reply({"error": {"code": 400, "message": "Provider returned error"}}, 400),
    json_reply({"detail": [{"loc": ["body", "input", "list[union]", 1], "msg": "Input should be valid"}]}, 422),
    json_reply({"success": False, "error": {"name": "ZodError", "message": '[{"path": ["input"]}]'}}, 400),
    json_reply({"message": "请求参数错误"}, 400),
    body(b"<html><h1>400 Bad Request</h1></html>", "text/html", 400),
    body(b"", None, 400),
    error(400, "unexpected 'id' in history", param="messages[1]"),
    events({"type": "error", "error": {"type": "invalid_request_error", "message": "bad history"}}),
    events(ended("failed", error={"code": "invalid_prompt", "message": "Invalid Responses API request"})),
]


@pytest.mark.parametrize("refusal", WORDINGS)
def test_each_wording_of_a_refusal_takes_the_next_step(refusal: Reply) -> None:
    with ScriptedServer(refusal, completed("hi")) as server:
        assert put(client(server), request(context=CONTEXT)).text == "hi"
        assert steps(server) == ["as received", "without ids"]


@pytest.mark.parametrize("explained", EXPLAINED)
def test_refusal_that_another_rule_explains_takes_no_step(explained: Reply) -> None:
    with ScriptedServer(explained, completed("hi")) as server:
        assert put(client(server), request(context=CONTEXT)).error
        assert len(server.requests) == 1


def test_by_code() -> None:
    with ScriptedServer(error(400, "no", code="invalid_encrypted_content"), completed("hi")) as server:
        assert put(client(server), request(context=CONTEXT)).text == "hi"


def test_by_an_error_event_before_anything_was_shown() -> None:
    refused = events({"type": "error", "error": {"message": NOT_FOUND}})
    with ScriptedServer(refused, completed("hi")) as server:
        assert put(client(server), request(context=CONTEXT)).text == "hi"
        assert steps(server) == ["as received", "without ids"]


def test_no_step_after_something_was_shown() -> None:
    with ScriptedServer(events(delta("half"), {"type": "error", "message": NOT_FOUND}), completed("hi")) as server:
        assert put(client(server), request(context=CONTEXT)).error
        assert len(server.requests) == 1


def test_end_of_the_ladder_is_the_first_refusal_and_no_setting(capfd: pytest.CaptureFixture[str]) -> None:
    refusals = [error(400, "first"), error(400, "second"), error(422, "third"), error(400, "fourth")]
    with ScriptedServer(*refusals, *refusals) as server:
        asked = client(server)
        for _ in range(2):  # no form was taken, so that the next turn begins as this one did
            outcome = put(asked, request(context=CONTEXT))
            assert outcome.message == (
                "the service answered 400: first; the simpler forms of earlier answers were refused too"
            )
        assert steps(server) == ["as received", "without ids", "messages only", "plain text"] * 2
    assert capfd.readouterr().err == ""


def test_another_failure_in_a_simpler_form_is_what_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(error(400, "first"), error(401, "no key")) as server:
        assert "no key was sent (401)" in put(client(server), request(context=CONTEXT)).message
    assert capfd.readouterr().err == ""


def test_text_from_the_start_has_one_other_form(capfd: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(error(400, "content must be a list"), completed("hi"), completed("again")) as server:
        asked = client(server, step=PLAIN_TEXT)
        assert put(asked, request(context=CONTEXT)).text == "hi"
        assert put(asked, request(context=CONTEXT)).text == "again"
        assert steps(server) == ["plain text", "messages only", "messages only"]
    assert capfd.readouterr().err == ""


def test_no_step_that_would_change_nothing() -> None:
    with ScriptedServer(always=error(400, "unknown content type: x")) as server:
        assert put(client(server)).error
        assert len(server.requests) == 1
        assert put(client(server)).message == "the service answered 400: unknown content type: x"
        assert len(server.requests) == 2
        plain = [Turn("1?", "one", None)]
        assert put(client(server), request(context=plain)).error
        assert steps(server)[2:] == ["messages only", "plain text"]


def test_step_that_would_change_nothing_is_left_out() -> None:
    nameless = [Turn("1?", "one", [{key: value for key, value in message("one").items() if key != "id"}])]
    with ScriptedServer(error(400, "unknown content type: x"), completed("hi")) as server:
        assert put(client(server), request(context=nameless)).text == "hi"
        assert len(server.requests) == 2
        assert "status" not in server.requests[1].json["input"][1]


def test_step_that_worked_is_where_later_turns_begin() -> None:
    with ScriptedServer(error(404, NOT_FOUND), completed("a"), completed("b")) as server:
        asked = client(server)
        put(asked, request(context=CONTEXT))
        put(asked, request(context=CONTEXT))
        assert steps(server) == ["as received", "without ids", "without ids"]


@pytest.mark.parametrize(
    ("step", "name"), [(WITHOUT_IDS, "without ids"), (MESSAGES_ONLY, "messages only"), (PLAIN_TEXT, "plain text")]
)
def test_ladder_begins_where_the_setting_says(step: int, name: str) -> None:
    with ScriptedServer(completed("a")) as server:
        put(client(server, step=step), request(context=CONTEXT))
        assert steps(server) == [name]


def test_one_line_names_the_setting(capfd: pytest.CaptureFixture[str]) -> None:
    replies = [error(404, NOT_FOUND), error(404, NOT_FOUND), completed("a"), completed("b")]
    with ScriptedServer(*replies) as server:
        asked = client(server)
        put(asked, request(context=CONTEXT))
        put(asked, request(context=CONTEXT))
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("mino: the service refuses earlier answers as they were received (Item with id 'rs_1' not")
    assert 'replay = "text"' in line


def test_steps_are_no_retries() -> None:
    replies = [error(404, NOT_FOUND), error(503, "x", headers={"retry-after-ms": "1"}), completed("hi")]
    with ScriptedServer(*replies) as server:
        assert put(client(server, retries=1), request(context=CONTEXT)).text == "hi"


def test_stored_history_never_changes() -> None:
    before = copy.deepcopy(CONTEXT)
    with ScriptedServer(error(404, NOT_FOUND), error(404, NOT_FOUND), completed("hi")) as server:
        put(client(server), request(context=CONTEXT))
    assert before == CONTEXT


INCLUDE: list[Reply] = [
    error(400, "Unknown parameter: 'include'.", param="include"),
    error(400, "Invalid value", param="include[0]"),
    error(400, "Unrecognized request argument supplied: include"),
    error(400, "Encrypted content is not supported with this model.", param="include"),
    error(400, "Encrypted content is not supported with this model."),
]


@pytest.mark.parametrize("refusal", INCLUDE)
def test_include_is_dropped_if_the_server_names_it(refusal: Reply) -> None:
    with ScriptedServer(refusal, completed("hi"), completed("again")) as server:
        asked = client(server)
        assert put(asked).text == "hi"
        assert put(asked).text == "again"
        assert ["include" in one.json for one in server.requests] == [True, False, False]
        assert all(one.json["store"] is False for one in server.requests)


def test_include_is_dropped_once() -> None:
    with ScriptedServer(always=INCLUDE[0]) as server:
        assert put(client(server)).error
        assert len(server.requests) == 2


@pytest.mark.parametrize("more", [{"param": "store"}, {}])
def test_store_is_never_dropped(more: dict[str, Any]) -> None:
    with ScriptedServer(error(400, "`store` must be true here", **more), completed("hi")) as server:
        outcome = put(client(server), request(context=CONTEXT))
        assert outcome.message == "the service answered 400: `store` must be true here"
        assert [one.json["store"] for one in server.requests] == [False]


def test_context_overflow_is_no_refused_item() -> None:
    with ScriptedServer(error(400, "input[3] exceeds the context window"), completed("hi")) as server:
        assert "too long" in put(client(server), request(context=CONTEXT)).message
        assert len(server.requests) == 1


TOO_LONG = [
    error(400, "input[3] exceeds the context window"),
    events(delta("half"), {"type": "error", "code": "context_length_exceeded", "message": "x"}),
    events(ended("failed", error={"code": "context_length_exceeded", "message": "x"})),
]


@pytest.mark.parametrize("reply", [*TOO_LONG, error(400, "first")])
def test_too_much_context_has_the_hint_of_whoever_asks(reply: Reply) -> None:
    with ScriptedServer(always=reply) as server:
        outcome = put(client(server), request(context=CONTEXT)._replace(send_less="/clear"))
    assert outcome.error
    assert outcome.error.hint == "/clear"


def test_refusal_without_a_word_is_said_as_that(capfd: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(Reply([], 400, ending="length"), completed("hi")) as server:
        assert put(client(server), request(context=CONTEXT)).text == "hi"
    assert "as they were received (no reason given); they" in capfd.readouterr().err
