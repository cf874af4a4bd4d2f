"""Fields that a server may refuse, over real HTTP: `text.format`, options of the user's; and what a failure carries."""

from typing import Any

import pytest

from mino.errors import AccessRefused, MinoError, Reply, ServiceFailed
from mino.responses.request import ContextTurn, Request
from tests import server as scripted
from tests.server import ScriptedServer, completed, delta, ended, error, events, json_reply
from tests.unit.responses.asking import Collecting, client, put
from tests.unit.responses.test_client_ladder import CONTEXT

SCHEMA = {"type": "object", "properties": {"名": {"const": None}}, "required": ["名"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}

REFUSALS = [
    error(400, "Unknown parameter: 'text.format'.", param="text.format"),
    error(400, "Invalid schema for response_format 'answer': …", param="text.format.schema"),
    error(400, "unsupported", param="text"),
    error(422, "This model does not support structured outputs"),
    error(400, "json_schema is not supported by this model"),
    json_reply({"detail": [{"loc": ["body", "text", "format"], "msg": "Extra inputs are not permitted"}]}, 422),
    events(ended("failed", error={"code": "invalid_prompt", "message": "'text.format' is not supported"})),
]


def wanting(context: list[Any] | None = None, **fields: Any) -> Request:
    turns: list[ContextTurn] = context or []
    return Request("m", fields.pop("instructions", None), turns, "谁？", **fields)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_server_that_refuses_the_format_gets_the_schema_in_words(
    refusal: scripted.Reply, capfd: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer(refusal, completed("{}"), completed("{}")) as server:
        asked = client(server)
        for _ in range(2):
            assert put(asked, wanting(CONTEXT, instructions="Be brief.", text_format=FORMAT)).text == "{}"
        first, second, third = (each.json for each in server.requests)
    assert first["text"] == {"format": FORMAT} and first["instructions"] == "Be brief."
    assert "text" not in second and second["input"] == first["input"]
    before, _, words = second["instructions"].partition("\n\n")
    assert before == "Be brief." and '"名":{"const":null}' in words
    assert third == second  # it is not tried again
    assert capfd.readouterr().err.count("refuses text.format") == 1


def test_a_format_of_the_user_s_own_is_not_left_out() -> None:
    own = {"text": {"format": {"type": "json_object"}}}
    with ScriptedServer(REFUSALS[0]) as server:
        failed = put(client(server), wanting(options=own)).error
        assert isinstance(failed, ServiceFailed) and "Unknown parameter: 'text.format'" in failed.message
        [asked] = server.requests
        assert asked.json["text"] == own["text"]


def test_the_schema_takes_the_place_of_another_format_and_leaves_the_rest_of_text() -> None:
    options = {"text": {"format": {"type": "json_object"}, "verbosity": "low"}}
    with ScriptedServer(completed("{}")) as server:
        put(client(server), wanting(options=options, text_format=FORMAT))
        assert server.requests[0].json["text"] == {"format": FORMAT, "verbosity": "low"}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"temperature": 0.2}, {"temperature": 0.2}),
        ({"reasoning": {"effort": "low", "summary": None}}, {"reasoning": {"effort": "low"}}),
        ({"tools": [{"type": "web_search", "x": None}]}, {"tools": [{"type": "web_search", "x": None}]}),
        ({"include": ["web_search_call.action.sources"]}, {"include": ["web_search_call.action.sources"]}),
        ({"include": None, "temperature": None}, {}),
        ({"元": "数据 🙂"}, {"元": "数据 🙂"}),
    ],
)
def test_options_are_sent_as_they_are(options: dict[str, Any], wanted: dict[str, Any]) -> None:
    ours = {"model": "m", "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}
    with ScriptedServer(completed("hi")) as server:
        put(client(server), wanting(options=options))
        sent = server.requests[0].json
    del sent["input"]
    if "include" in options:
        del ours["include"]
    assert sent == ours | wanted


@pytest.mark.parametrize("option", ["include", "temperature", "reasoning"])
def test_an_option_that_the_server_refuses_is_told_and_never_dropped(option: str) -> None:
    options = {option: ["x"]}
    with ScriptedServer(error(400, f"Unknown parameter: '{option}'.", param=option)) as server:
        failed = put(client(server), wanting(CONTEXT, options=options)).error
        assert failed and f"Unknown parameter: '{option}'" in failed.message
        assert len(server.requests) == 1


def failure(server: ScriptedServer, retries: int = 0, shown: bool = True) -> MinoError:
    with pytest.raises(MinoError) as caught:
        client(server, retries=retries).ask(wanting(), Collecting([]) if shown else None)
    return caught.value


@pytest.mark.parametrize(
    ("reply", "kind", "known"),
    [
        (error(500, "down"), ServiceFailed, Reply(500)),
        (error(429, "slow", headers={"retry-after": "7"}), ServiceFailed, Reply(429, 7.0)),
        (error(503, "later", headers={"retry-after": "900"}), ServiceFailed, Reply(503, 900.0)),
        (error(401, "no"), AccessRefused, Reply(401)),
        (error(404, "no"), ServiceFailed, Reply(404)),
        (error(302, "moved", headers={"location": "http://127.0.0.1:1/"}), ServiceFailed, Reply(302)),
        (events(delta("半"), ended("failed", error={"message": "Sorry"})), ServiceFailed, Reply(text="半")),
        (events(delta("半")), ServiceFailed, Reply(text="半")),
        (events(delta("半"), {"type": "error", "message": "no"}), ServiceFailed, Reply(text="半")),
        (events(ended(output=[])), ServiceFailed, Reply()),
        (json_reply({"choices": []}), ServiceFailed, Reply()),
    ],
)
@pytest.mark.parametrize("shown", [True, False])
def test_a_failure_of_the_service_carries_what_came(
    reply: scripted.Reply, kind: type[MinoError], known: Reply, shown: bool
) -> None:
    with ScriptedServer(reply) as server:
        failed = failure(server, shown=shown)
    assert type(failed) is kind and failed.reply == known


def test_a_server_that_is_not_there_has_an_empty_reply() -> None:
    with ScriptedServer() as server:
        pass
    assert failure(server).reply == Reply()


def test_the_reply_of_the_last_attempt_counts() -> None:
    with ScriptedServer(error(429, "slow", headers={"retry-after-ms": "1"}), error(500, "down")) as server:
        assert failure(server, retries=1).reply == Reply(500)


def test_nothing_is_shown_until_the_display_says_so() -> None:
    """A display that shows nothing yet leaves a broken stream to another attempt, which begins anew."""

    class Waiting(Collecting):
        def show(self, text: str) -> bool:
            super().show(text)
            return False

    display = Waiting([])
    with ScriptedServer(events(delta("half")), completed("whole")) as server:
        assert client(server, retries=1).ask(wanting(), display).text == "whole"
    assert display.attempts == 2 and "".join(display.pieces) == "halfwhole"
