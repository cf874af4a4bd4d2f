"""Messages → turns: nothing is paired by guessing, and nothing is left out in silence."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from mino.formats.pairs import Imported, Message, number, pair


def say(*roles: Any) -> Imported:
    """Pair messages, one a line: `u1` is the user saying 1, other words are roles, the rest stands as it is."""
    messages: list[Any] = []
    for role in roles:
        if isinstance(role, str):
            name = {"u": "user", "a": "assistant"}.get(role[0], role)
            messages.append({"role": name if role[1:].isdecimal() else role, "content": role[1:]})
        else:
            messages.append(role)
    return pair(Message(f"line {line}", message) for line, message in enumerate(messages, 1))


@pytest.mark.parametrize(
    ("roles", "turns", "left_out"),
    [
        (["u1", "a2", "u3", "a4"], ["12", "34"], []),
        (["system", "u1", "a2"], ["12"], ["line 1: left out a system message"]),
        (["u1", "tool", "a2"], ["12"], ["line 2: left out a tool message"]),
        (["u1", "u2", "a3"], ["23"], ["line 1: left out a question without an answer"]),
        (["u1", "a2", "a3"], ["12"], ["line 3: left out an answer without a question before it"]),
        (
            ["a1", "u2"],
            [],
            [
                "line 1: left out an answer without a question before it",
                "line 2: left out a question without an answer",
            ],
        ),
        (
            ["u1", {"role": "user"}, "a2"],
            [],
            ["line 1: left out a question w", "line 2: left out a question without text", "line 3: left out an ans"],
        ),
        (
            ["u1", {"role": "assistant", "content": None, "tool_calls": []}, "a2"],
            ["12"],
            ["line 2: left out an answer without text"],
        ),
        (
            ["u1", {"role": "user", "content": " \n"}, "a2"],
            [],
            ["line 1: ", "line 2: left out a question without text", "line 3: "],
        ),
        # What cannot be read may have been the answer, or a question: it ends the pair.
        (
            ["u1", 7, "a2"],
            [],
            [
                "line 1: left out a question without",
                "line 2: left out 7, which is not a message",
                "line 3: left out an answer",
            ],
        ),
        (
            ["u1", {"role": "human", "content": "x"}, "a2"],
            [],
            ["line 1: ", 'line 2: left out an object with the role "human"', "line 3: "],
        ),
        (
            ["u1", {"content": "x"}, "a2"],
            [],
            ["line 1: ", "line 2: left out an object without a role, which is not a message", "line 3: "],
        ),
        (
            ["u1", {"role": ["user"]}, "a2"],
            [],
            ["line 1: ", 'line 2: left out an object with the role ["user"]', "line 3: "],
        ),
    ],
)
def test_pairing(roles: Sequence[Any], turns: list[str], left_out: list[str]) -> None:
    imported = say(*roles)
    assert ["".join(turn) for turn in imported.turns] == turns
    assert len(imported.left_out) == len(left_out)
    for told, expected in zip(imported.left_out, left_out, strict=True):
        assert told.startswith(expected)
        assert re.match(r"line \d: left out \S", told)


def test_parts_of_a_message() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:…"}}
    parts = [{"type": "text", "text": "看"}, image, {"type": "input_text", "text": "这个"}]
    imported = say(
        {"role": "user", "content": parts}, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}
    )
    assert imported.turns == []
    assert imported.left_out == [
        'line 1: left out a part that is not text ("image_url")',
        'line 2: left out a part that is not text ("refusal")',
        "line 2: left out an answer without text",
        "line 1: left out a question without an answer",
    ]
    assert say({"role": "user", "content": parts}, "a1").turns == [("看这个", "1")]


def test_every_role_beside_the_conversation_is_named() -> None:
    asides = ["system", "developer", "tool", "function"]
    left_out = [f"line {line}: left out a {role} message" for line, role in enumerate(asides, 2)]
    assert say("u1", *asides, "a2") == Imported([("1", "2")], left_out)


def test_half_characters_of_a_text_are_joined_or_replaced() -> None:
    question = {"role": "user", "content": ["  你好", {"text": " \ud83d"}, {"text": "\ude00\ud83d"}]}
    assert say(question, {"role": "assistant", "content": "\ud83d\ude00 "}).turns == [("  你好 😀\ufffd", "😀 ")]


@pytest.mark.parametrize("content", ["", " \t\n", "\u3000", [], ["", " "], [{"text": ""}], None, 7, {"text": "x"}])
def test_a_message_without_text(content: Any) -> None:
    assert say("u1", {"role": "assistant", "content": content}) == Imported(
        [], ["line 2: left out an answer without text", "line 1: left out a question without an answer"]
    )


def test_a_message_that_cannot_be_read_says_why_and_ends_its_pair() -> None:
    messages = [Message("line 7", {"role": "user", "content": "问"}), Message("line 8", flaw="a line that is not JSON")]
    assert pair(messages).left_out == [
        "line 7: left out a question without an answer",
        "line 8: left out a line that is not JSON",
    ]


def test_the_messages_of_an_array_are_numbered() -> None:
    assert list(number(["甲", None])) == [Message("message 1", "甲"), Message("message 2", None)]
    assert pair(number([])) == Imported([], [])
