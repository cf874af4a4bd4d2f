"""Every recorded answer of a real server, whole, byte by byte and cut at fifty places, and each once over real HTTP.

The outcome is what the recording deserves: an answer with its text, or the failure with its exit status.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mino.errors import MinoError, ServiceFailed
from mino.responses.answer import AnswerFold
from mino.responses.body import fold_body
from mino.responses.exchange import Head
from mino.responses.post import ConnectionLost
from tests import captures
from tests.captures import Capture
from tests.server import ScriptedServer
from tests.unit.responses.asking import ask

ANSWERS = {
    "litellm/bridge_maxtok.txt": ("incomplete", "I'm here to help"),
    "litellm/bridge_stream.txt": ("completed", "The capital of France is Paris."),
    "litellm/bridge_turn2.txt": ("completed", "I'm glad to help. My name is Elena."),
    "litellm/mock_nonstream.txt": ("completed", "Hello from litellm mock."),
    "litellm/stream_local-llamacpp-chat.txt": (
        "completed",
        "La femme au Grand, la femme au grand.\n\nLa femme au grand is",
    ),
    "litellm/stream_local-llamacpp-resp.txt": ("completed", "Elle-te-la! (Ladies in Chief!) Elle-t-la"),
    "llamacpp/crlf_unicode.txt": ("completed", "Répète:"),
    "llamacpp/developer_role.txt": ("completed", "I'm glad to help! Just what"),
    "llamacpp/empty_content.txt": ("completed", "I'm glad to help!\n\n"),
    "llamacpp/instructions_null.txt": ("completed", "Hello there, welcome"),
    "llamacpp/no_model.txt": ("completed", "Hello! How can"),
    "llamacpp/nonstream.json": (
        "completed",
        "The tale of a long story is a classic example of how we can use narrative to convey complex information in a "
        "clear and engaging way. I'm here to help you craft a compelling narrative that explores a",
    ),
    "llamacpp/nulls.txt": ("completed", "I'm sorry for your sake. I"),
    "llamacpp/stream_first.txt": ("completed", "The capital of France is Paris."),
    "llamacpp/stream_maxtok.txt": ("completed", "I'm glad you reached out to me"),
    "llamacpp/stream_real_multi_turn.txt": ("completed", "Your dog is called Rex."),
    "llamacpp/text_format.txt": ("completed", "Hello! How can"),
    "llamacpp/turn2_assistant_easy_type.txt": ("completed", "Can you provide a more accurate answer?"),
    "llamacpp/turn2_full_items.txt": ("completed", "I'm glad to meet you. My name is Elena."),
    "llamacpp/turn2_reasoning_content.txt": ("completed", "You haven't replied yet."),
    "llamacpp/two_assistants.txt": ("completed", "I'm sorry for any misglam"),
    "llmock/length.txt": ("incomplete", "cut"),
    "llmock/plain.txt": ("completed", "LLMock says hello from gpt-5.6."),
    "llmock/slow_first.txt": ("completed", "LLMock says hello from gpt-5.6."),
    "llmock/stall.txt": ("completed", "LLMock says hello from gpt-5.6."),
    "llmock/unicode.txt": ("completed", "Linie eins\nこんにちは 🌍 end"),
}

# The exit status, the sentence, and what was shown before it.
FAILURES = {
    "litellm/bad_key.txt": (69, "the service answered 400: No connected db", ""),
    "litellm/no_key.txt": (69, "the service answered 500: Internal Server Error", ""),
    "litellm/stream_dead-upstream.txt": (69, "the service answered 500: litellm.InternalServerError:", ""),
    "litellm/stream_mock-chat.txt": (69, "the service answered 500: Error processing stream start", ""),
    "litellm/stream_mock-openai.txt": (69, "the service answered 500: Error processing stream start", ""),
    "litellm/turn2_local-llamacpp-chat.txt": (69, "the service answered 400: litellm.BadRequestError:", ""),
    "litellm/unknown_model.txt": (69, "the service answered 400: /responses: Invalid model name", ""),
    "llamacpp/auth_nokey.txt": (77, "(401): Invalid API Key", ""),
    "llamacpp/auth_wrongkey.txt": (77, "(401): Invalid API Key", ""),
    "llamacpp/bad_json.txt": (69, "the service answered 400: [json.exception.parse_error.101]", ""),
    "llamacpp/ping.txt": (69, "the model gave an empty answer", ""),
    "llamacpp/prev_id.txt": (69, "the service answered 400: llama.cpp does not support 'previous_response_id'", ""),
    "llamacpp/refusal_part.txt": (69, "the service answered 400: unsupported content[].type", ""),
    "llamacpp/stream_badparam.txt": (69, "the service answered 400: Field 'temperature':", ""),
    "llamacpp/too_long.txt": (69, "the conversation is too long for the model: request (9031 tokens)", ""),
    "llamacpp/turn2_assistant_easy_notype.txt": (69, "the service answered 400: Cannot determine type of 'item'", ""),
    "llamacpp/turn2_reasoning_encrypted.txt": (69, "the service answered 400: item['content'] is not an array", ""),
    "llamacpp/websearch_item.txt": (69, "the service answered 400: Cannot determine type of 'item'", ""),
    "llmock/disconnect.txt": (69, "the answer broke off: the connection was lost", "LLMock says hello "),
    "llmock/http_400.txt": (69, "the service answered 400: Bad request", ""),
    "llmock/http_401.txt": (77, "(401): Unauthorized", ""),
    "llmock/http_404.txt": (69, "answered 404: Resource not found", ""),
    "llmock/http_429.txt": (69, "the service answered 429: Rate limit exceeded", ""),
    "llmock/http_503.txt": (69, "the service answered 503: Service unavailable", ""),
    "llmock/malformed.txt": (
        69,
        "the service sent data that is not an event of the Responses API:",
        "LLMock says hello ",
    ),
    "llmock/truncate.txt": (69, "the answer broke off: the stream ended early", "LLMock says hello "),
}
STREAMS = sorted(
    {*ANSWERS, "llamacpp/ping.txt", "llmock/disconnect.txt", "llmock/malformed.txt", "llmock/truncate.txt"}
)


def test_every_recording_has_an_outcome() -> None:
    assert sorted({*ANSWERS, *FAILURES}) == captures.names()


@pytest.mark.parametrize("name", ANSWERS)
def test_recorded_answer_over_http(name: str) -> None:
    with ScriptedServer(captures.load(name).reply()) as server:
        outcome = ask(server)
    assert outcome.answer
    assert (outcome.answer.status, outcome.text) == ANSWERS[name]


@pytest.mark.parametrize("name", FAILURES)
def test_recorded_failure_over_http(name: str) -> None:
    status, sentence, shown = FAILURES[name]
    with ScriptedServer(captures.load(name).reply()) as server:
        outcome = ask(server)
    assert outcome.error
    assert (outcome.error.status, outcome.shown) == (status, shown)
    assert sentence in outcome.message


def played(capture: Capture, size: int) -> tuple[str, str, str]:
    """What the body makes in pieces of `size`: what was shown, the status, and the stored text or the sentence."""

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(capture.body), size):
            yield capture.body[start : start + size]
        if capture.cut:
            raise ConnectionLost("cut")

    fold = AnswerFold()
    shown = ""
    try:
        for text in fold_body("http://h", Head(capture.status, capture.headers), pieces(), fold, None):
            shown += text
        answer = fold.finish()
    except ConnectionLost:
        return shown, "failed", "cut"
    except MinoError as error:
        return shown, "failed", error.message
    assert shown == answer.text
    return shown, answer.status, answer.text


@pytest.mark.parametrize("name", STREAMS)
def test_recorded_body_gives_the_same_however_it_is_cut(name: str) -> None:
    capture = captures.load(name)
    size = len(capture.body)
    whole = played(capture, size)
    if name in ANSWERS:
        assert whole[1:] == ANSWERS[name]
    assert played(capture, 1) == whole
    assert played(capture, max(1, size // 51)) == whole


@pytest.mark.parametrize("name", STREAMS)
def test_recording_that_breaks_off_at_fifty_places_is_never_a_whole_answer(name: str) -> None:
    capture = captures.load(name)
    whole = played(capture, len(capture.body))
    for place in range(50):
        body = capture.body[: len(capture.body) * place // 50]
        shown, status, said = played(Capture(capture.status, capture.headers, body, cut=False), 64)
        if status == "failed":
            assert whole[0].startswith(shown) or whole[1] == "failed"
        else:  # only what comes after the terminal event was lost
            assert (shown, status, said) == whole


@pytest.mark.parametrize("name", sorted(FAILURES.keys() - set(STREAMS)))
def test_recorded_refusal_is_the_same_however_it_arrives(name: str) -> None:
    status, sentence, _ = FAILURES[name]
    whole = captures.load(name).reply()
    [body] = [step for step in whole.steps if isinstance(step, bytes)]
    slow = replace(whole, steps=[body[place : place + 1] for place in range(len(body))], ending="chunked")
    cut = [replace(whole, steps=[body[: len(body) * place // 50]], ending="cut") for place in range(50)]
    with ScriptedServer(slow, *cut) as server:
        outcomes = [ask(server) for _ in range(51)]
    assert sentence in outcomes[0].message
    for outcome in outcomes:
        assert outcome.error and (outcome.error.status, outcome.shown) == (status, "")
        assert "\n" not in outcome.message and len(outcome.message) < 500


def test_cut_recording_with_pieces_shown_is_a_failure() -> None:
    capture = captures.load("llmock/plain.txt")
    fold = AnswerFold()
    half = capture.body[: len(capture.body) // 2]
    assert "".join(fold_body("http://h", Head(200, capture.headers), iter([half]), fold, None))
    with pytest.raises(ServiceFailed):
        fold.finish()
