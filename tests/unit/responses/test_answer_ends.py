"""The folding of how a response ends: complete, cut short, failed, without text, or not at all."""

import json
from typing import Any

import pytest

from mino.errors import ServiceFailed
from mino.responses.answer import AnswerFold
from mino.responses.sse import Event
from tests.server import delta, ended, item_done, message
from tests.unit.responses.folding import (
    CALL,
    REASONING,
    Said,
    answered,
    event,
    failure,
    fold,
)

# Ends


def test_unknown_event_types_are_ignored() -> None:
    kinds = ["keepalive", "response.keep_alive", "response.metadata", "response.steer.x", "x", "response.audio.delta"]
    assert answered(*({"type": kind, "delta": "no"} for kind in kinds), delta("hi"), ended()).text == "hi"


@pytest.mark.parametrize("data", [b"", b":", b": keep-alive", b"ping", b"PING", b"keep-alive", b" "])
def test_heartbeats_sent_as_data_are_ignored(data: bytes) -> None:
    assert answered(delta("h"), Event("", data), delta("i"), ended()).text == "hi"


def test_reasoning_is_not_shown() -> None:
    kinds = ["reasoning_text", "reasoning_summary_text"]
    said = [{"type": f"response.{kind}.delta", "output_index": 0, "delta": "hmm"} for kind in kinds]
    done = {"type": "response.content_part.done", "part": {"type": "reasoning_text", "text": "hmm"}}
    assert answered(*said, done, item_done(REASONING, 0), delta("hi", 1), ended()).text == "hi"


def test_annotations_logprobs_and_obfuscation_are_ignored() -> None:
    note = {"type": "response.output_text.annotation.added", "annotation": None}
    assert answered({**delta("hi"), "logprobs": [], "obfuscation": "zzz"}, note, ended()).text == "hi"


def test_events_after_the_end_are_ignored() -> None:
    folded, shown = fold(delta("hi"), ended(), delta("more"), {"type": "error", "message": "late"})
    assert (shown, folded.finish().text) == ("hi", "hi")


def test_incomplete_with_text() -> None:
    answer = answered(delta("hal"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert (answer.status, answer.reason, answer.text) == ("incomplete", "max_output_tokens", "hal")


@pytest.mark.parametrize("details", [None, {}, {"reason": None}, {"reason": 5}, "x"])
def test_incomplete_without_text_or_reason(details: Any) -> None:
    answer = answered(ended("incomplete", incomplete_details=details))
    assert (answer.status, answer.reason, answer.text) == ("incomplete", None, "")


def test_incomplete_shows_the_text_that_is_in_the_items_only() -> None:
    assert answered(ended("incomplete", output=[message("half")])).text == "half"


def test_status_against_event_type() -> None:
    assert answered(delta("a"), ended("completed", status="incomplete")).status == "incomplete"
    assert answered(delta("a"), ended("incomplete", status="completed")).status == "incomplete"
    assert answered(delta("a"), ended("completed", status=None)).status == "completed"
    assert answered(delta("a"), ended("completed", status="in_progress")).status == "completed"
    assert "service failed" in failure(delta("a"), ended("completed", status="failed"))
    assert "service failed" in failure(delta("a"), ended("completed", status="cancelled"))
    assert "service failed" in failure(delta("a"), ended("failed", status="completed"))


def test_failed_with_and_without_reason() -> None:
    said = ended("failed", error={"code": "server_error", "message": "The model\nexploded."})
    assert failure(delta("a"), said) == "the service failed: The model exploded"
    assert failure(ended("failed", error=None)) == "the service failed: no reason given"


def test_reasoning_only() -> None:
    assert failure(item_done(REASONING), ended(output=[REASONING])) == "the model gave only reasoning and no answer"


@pytest.mark.parametrize("said", [[ended()], [delta(" \n"), ended()], [ended(output=[message("")])]])
def test_empty_answer(said: list[Said]) -> None:
    assert failure(*said) == "the model gave an empty answer"


def test_function_call_without_text() -> None:
    assert "'get_weather'" in failure(item_done(CALL), ended(output=[CALL]))


def test_function_call_with_text_is_kept_and_named() -> None:
    answer = answered(delta("hi", 0), item_done(message("hi"), 0), item_done(CALL, 1), ended())
    assert (answer.text, answer.calls, answer.output) == ("hi", ["get_weather"], [message("hi"), CALL])


def test_end_of_stream_without_an_end() -> None:
    folded, _ = fold(delta("hi"))
    assert folded.broke_off
    assert "ended early" in failure(delta("hi"))


def test_done_marker_before_the_end() -> None:
    folded, _ = fold(delta("hi"), Event("", b"[DONE]"))
    assert folded.over
    assert folded.broke_off


def test_done_marker_after_the_end() -> None:
    assert answered(delta("hi"), ended(), Event("", b"[DONE]")).text == "hi"


# Errors in the stream


@pytest.mark.parametrize(
    "said",
    [
        {"type": "error", "code": "server_error", "message": "It broke.", "param": None, "sequence_number": 3},
        {"type": "error", "sequence_number": 3, "error": {"type": "x", "code": None, "message": "It broke."}},
        {"error": {"code": 500, "message": "It broke.", "type": "server_error"}},
        {"error": "It broke."},
        {"object": "error", "message": "It broke."},
        {"error_type": "x", "error_message": "It broke."},
        {"type": "server_error", "error": {"message": "It broke."}},
        {"type": "error", "error": {}, "message": "It broke."},
        Event("error", b'{"message": "It broke."}'),
        Event("", b'{"type": "error", "message": "It broke.", "code": ' + b"[" * 1000 + b"]" * 1000 + b"}"),
        Event("error", b'{"type": "overloaded", "message": "It broke."}'),
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x", "message": "It broke."}}},
    ],
)
def test_error_of_every_shape(said: Said) -> None:
    assert failure(delta("hi"), said) == "the service failed: It broke"


@pytest.mark.parametrize("code", [None, 500, "server_error"])
def test_error_without_message(code: Any) -> None:
    assert failure({"type": "error", "code": code, "message": None}).startswith("the service failed: ")


def test_response_failed_after_an_error_is_swallowed() -> None:
    said = {"type": "error", "message": "the real reason"}
    assert failure(said, ended("failed", error={"message": "later"})) == "the service failed: the real reason"


def test_context_overflow_in_the_stream() -> None:
    said = {"type": "error", "code": "context_length_exceeded", "message": "Too many tokens"}
    assert failure(said) == "the conversation is too long for the model: Too many tokens"


@pytest.mark.parametrize(
    "data", [b"{", b"nonsense", b"[1]", b"7", b"null", b'"x"', b'{"a": NaN}', b"<html>", b"[" * 5000]
)
def test_data_that_is_no_json_object(data: bytes) -> None:
    assert "not an event of the Responses API" in failure(delta("hi"), Event("", data))


def test_cut_last_event_is_no_protocol_error() -> None:
    for data in (b'{"type": "response.out', b"7", b"[DO"):
        folded = AnswerFold()
        assert folded.add(event(delta("hi"))) == "hi"
        assert folded.add(Event("", data), cut=True) == ""
        assert folded.broke_off


def test_whole_last_event_without_its_blank_line_counts() -> None:
    folded = AnswerFold()
    folded.add(event(delta("hi")))
    folded.add(event(ended()), cut=True)
    assert folded.finish().text == "hi"


def test_key_in_an_error_is_hidden_before_it_is_cut() -> None:
    key = "sk-" + "s" * 60
    folded = AnswerFold(key)
    folded.add(event({"type": "error", "message": "x" * 180 + key}))
    with pytest.raises(ServiceFailed) as caught:
        folded.finish()
    assert "sk-" not in caught.value.message


# A whole response in JSON


def test_whole_response() -> None:
    folded = AnswerFold()
    response = ended(output=[message("hi 你好")])["response"]
    assert folded.add_whole(json.dumps(response).encode()) == "hi 你好"
    assert (folded.finish().text, folded.finish().model) == ("hi 你好", "m-1")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"error": {"message": "no"}}', "the service failed: no"),
        (b'{"error": "no"}', "the service failed: no"),
        (b'{"status": "failed", "error": {"message": "no"}}', "the service failed: no"),
        (b'{"status": "failed", "error": null}', "the service failed: no reason given"),
        (b'{"choices": []}', 'the service sent data that is not an event of the Responses API: {"choices": []}'),
        (b'{"status": "comp', 'the service sent data that is not an event of the Responses API: {"status": "comp'),
        (b'{"output": []}', "the model gave an empty answer"),
    ],
)
def test_whole_response_that_is_no_answer(body: bytes, sentence: str) -> None:
    folded = AnswerFold()
    assert folded.add_whole(body) == ""
    with pytest.raises(ServiceFailed) as caught:
        folded.finish()
    assert caught.value.message == sentence
