"""Error bodies of every known shape become one clean line, and the right class."""

import json
from typing import Any

import pytest

from mino.errors import AccessRefused, MinoError, ServiceFailed
from mino.responses.failure import ServerError, http_failure, read_body, read_error


def failure(status: int, body: Any, key: str | None = "sk-1", request_id: str = "") -> MinoError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    where = {"url": "http://h/v1/responses", "model": "m", "key_source": "OPENAI_API_KEY", "request_id": request_id}
    return http_failure(status, read_body(raw), key=key, **where)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "Bad.", "type": "t", "param": None, "code": None}}, "Bad"),
        ({"error": {"code": 400, "message": "Bad", "type": "t"}}, "Bad"),
        ({"error": {"code": 400, "message": "Bad", "metadata": {"raw": "x"}}, "user_id": "u"}, "Bad"),
        ({"error": "Bad"}, "Bad"),
        ({"error": "invalid_grant", "error_description": "Bad"}, "invalid_grant: Bad"),
        ({"detail": "Bad"}, "Bad"),
        ({"detail": [{"loc": ["body", "input", 1, "id"], "msg": "Bad", "type": "missing"}]}, "body.input.1.id: Bad"),
        ({"message": "Bad"}, "Bad"),
        ({"object": "error", "message": "Bad", "code": 400}, "Bad"),
        ({"error_type": "x", "error_message": "Bad"}, "Bad"),
        ({"error": {"message": None, "code": "odd_code"}}, "odd_code"),
        ({"error": {"message": {"text": "Bad"}}}, '{"text": "Bad"}'),
        ({"something": "else"}, '{"something": "else"}'),
        ("Bad", "Bad"),
        (b"Internal Server Error", "Internal Server Error"),
        (b"", "Bad Request"),
        (b" \r\n", "Bad Request"),
        (b'data: {"error": {"message": "Bad", "code": "500"}}\n\ndata: [DONE]\n\n', "Bad"),
        (b'event: error\ndata: {"type":"error","message":"Bad"}', "Bad"),
        (b"<html><head><title>502 Bad Gateway</title><style>a{b}</style></head></html>", "502 Bad Gateway"),
        (b"a < b and c > d", "a < b and c > d"),
        (b"\xff\xfe caf\xc3\xa9", "\ufffd\ufffd café"),
        (b"[" * 100_000, "[" * 199 + "…"),
        (b"null", "null"),
        (b"\x1b[31mred\x07\x9b", "\\x1b[31mred\\x07\ufffd"),
        ("a\u202eb\u009bc", "a\\u202eb\\u009bc"),
        ("two\nlines\u2028three", "two lines three"),
    ],
)
def test_error_body_of_every_shape(body: Any, said: str) -> None:
    assert failure(400, body).message == f"the service answered 400: {said}"


def test_at_most_200_characters() -> None:
    assert len(failure(400, {"error": "x" * 10_000}).message) <= 200 + len("the service answered 400: ")


def test_request_id_when_given() -> None:
    assert failure(500, {"error": "Bad"}, request_id="req_7").message.endswith("Bad (request id req_7)")


def test_status_that_nobody_knows() -> None:
    assert failure(599, b"").message == "the service answered 599: no reason given"


@pytest.mark.parametrize("status", [401, 403])
def test_refused_key_names_its_source_and_never_the_key(status: int) -> None:
    error = failure(status, {"error": "Incorrect API key provided: sk-1"})
    assert isinstance(error, AccessRefused)
    assert (
        error.message
        == f"the service refused the key from OPENAI_API_KEY ({status}): Incorrect API key provided: [key]"
    )
    assert "OPENAI_API_KEY" in error.hint


@pytest.mark.parametrize("status", [401, 403])
def test_refused_without_a_key_says_that_none_was_sent(status: int) -> None:
    error = failure(status, {"error": "Missing bearer"}, key=None)
    assert isinstance(error, AccessRefused)
    assert "no key was sent" in error.message
    assert error.hint == "export OPENAI_API_KEY=…"


def test_key_is_hidden_before_the_line_is_cut() -> None:
    key = "sk-" + "s" * 60
    for padding in range(120, 210, 7):
        assert "sk-" not in failure(400, {"error": "x" * padding + key}, key=key).message


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://h/responses", "--base-url http://h/v1"),
        ("http://h/v1/v1/responses", "--base-url http://h/v1"),
        ("http://h/v1/responses", "without /v1"),
    ],
)
def test_404_shows_the_whole_url_and_hints_at_v1(url: str, hint: str) -> None:
    error = http_failure(404, ServerError("nope"), url=url, model="m", key=None, key_source="", request_id="")
    assert isinstance(error, ServiceFailed)
    assert f"'{url}'" in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "context_length_exceeded", "message": "Too many"}},
        {"error": {"code": 400, "message": "request exceeds", "type": "exceed_context_size_error"}},
        {"error": {"message": "exceeds the available context size (4096 tokens)"}},
        {"error": {"message": "This model's maximum context length is 8192 tokens"}},
    ],
)
def test_context_overflow_is_said_clearly(body: Any) -> None:
    error = failure(400, body)
    assert error.message.startswith("the conversation is too long for the model: ")
    assert "--context" in error.hint


KEYS = ("model", "instructions", "stream", "store")

REFUSED_ITEMS = [
    "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
    "The encrypted content gAAA could not be verified.",
    "Encrypted content is not supported.",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'.",
    "item['content'] is not an array",
    "item['content'] is empty",
    "Cannot determine type of 'item'",
    "unknown input item type: web_search_call",
    "unknown content type: refusal",
    "unsupported content[].type",
    "`input[66]` missing required field `id`",
    "missing required field `id`",
    "Invalid value: 'reasoning'. (param input[1].type)",
    'litellm.BadRequestError: {"error":{"message":"item[\'content\'] is not an array"}}',
]


@pytest.mark.parametrize("message", REFUSED_ITEMS)
def test_refused_item_is_known(message: str) -> None:
    assert read_error({"error": {"message": message}}).refuses_items(404, KEYS)


def test_refused_item_by_code_param_or_place() -> None:
    assert ServerError("x", code="invalid_encrypted_content").refuses_items(404, KEYS)
    assert ServerError("x", param="input[2].id").refuses_items(404, KEYS)
    assert read_error({"detail": [{"loc": ["body", "input", 1], "msg": "bad"}]}).refuses_items(404, KEYS)


@pytest.mark.parametrize("message", ["Invalid model", "Rate limit exceeded", "input is too long", "store must be true"])
def test_other_errors_are_no_refused_item(message: str) -> None:
    assert not ServerError(message).refuses_items(404, KEYS)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "server_error",
    [
        ServerError("Invalid Responses API request", code="invalid_prompt"),
        ServerError("input: Invalid input at output.0.content"),
        ServerError("x", param="messages[3].content"),
        ServerError('cannot read {"model": "m", "input": [{"type": "reasoning"}], "store": false}'),
        ServerError("Items are not persisted when `store` is set to false."),
        ServerError("这个请求无效"),
        ServerError(),
    ],
)
def test_any_400_or_422_may_mean_an_old_item(server_error: ServerError, status: int) -> None:
    assert server_error.refuses_items(status, KEYS)
    assert not server_error.refuses_items(500, KEYS)
    assert not server_error.refuses_items(200, KEYS) or server_error.code


@pytest.mark.parametrize(
    "server_error",
    [
        ServerError("The model `m` does not exist or you do not have access to it."),
        ServerError("x", code="model_not_found"),
        ServerError("Unknown model: m"),
        ServerError("x", param="model"),
        ServerError("Incorrect API key provided"),
        ServerError("API key not valid. Please pass a valid API key."),
        ServerError("x", code="invalid_api_key"),
        ServerError("x", kind="authentication_error"),
        ServerError("x", code="insufficient_quota"),
        ServerError("input[3] exceeds the context window"),
        ServerError("x", param="store"),
        ServerError("`store` must be true"),
        ServerError("Unsupported parameter: 'stream' is not supported with this model."),
        ServerError("body.instructions: Input should be a list"),
        ServerError("x", param="instructions.0"),
    ],
)
def test_400_that_another_rule_explains_is_no_refused_item(server_error: ServerError) -> None:
    assert not server_error.refuses_items(400, KEYS)


def test_include_is_named() -> None:
    assert ServerError("x", param="include").names_include
    assert ServerError("Unknown parameter: 'include'.").names_include
    assert ServerError("Encrypted content is not supported with this model.").refuses_encrypted
    assert ServerError("body.include.0: Input should be 'a'").names_include
    assert ServerError("include is not supported").names_include
    assert not ServerError("`store` must be true").names_include


@pytest.mark.parametrize(
    "message",
    [
        "You can retry your request. Please include the request ID req_1 in your message.",  # OpenAI's server errors
        "You must include a key",
        "Your plan does not include this model",
        "Available models include: a, b",
    ],
)
def test_include_as_an_ordinary_word_is_not_named(message: str) -> None:
    assert not ServerError(message).names_include


def test_error_in_the_language_of_its_server_can_be_read() -> None:
    assert read_error({"error": {"原因": "密钥"}}).sentence("sk-é") == '{"原因": "密钥"}'
    assert read_error({"error": {"why": "sk-é"}}).sentence("sk-é") == '{"why": "[key]"}'


@pytest.mark.parametrize("piece", ["item with id ", "encrypted content ", "<", "<script", "include "])
def test_hostile_body_comes_to_an_end(piece: str) -> None:
    server_error = read_body((piece * (1_000_000 // len(piece))).encode())
    assert not server_error.refuses_items(404, KEYS)
    assert server_error.refuses_items(400, KEYS) or server_error.names_include
    assert len(server_error.sentence("sk-1")) <= 200
