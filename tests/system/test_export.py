"""`mino history export` in its four formats, and what it says of what it leaves out."""

import json
from pathlib import Path

import pytest

from mino.journal.record import Record, assistant_message, encode, turn_end, user_message
from tests.homes import completed, ended, make_home, numbered, saved_in, turns_of
from tests.system.program import Program

PAIRS = (("你好，我是张三", "你好，张三 😀"), ("second\nquestion", "second answer\n"))
MIXED = numbered(
    completed(PAIRS[0]),
    ended(1, "f" * 32, "failed?", "failed"),
    completed(PAIRS[1]),
    ended(1, "e" * 32, "c?", "cancelled"),
)


def test_messages_come_back_by_import(mino: Program, tmp_path: Path) -> None:
    make_home(mino.home, MIXED)

    done = mino.run("history", "export", "--format", "messages")

    assert done.status == 0
    assert [(each["role"], each["content"]) for each in done.json] == [
        (role, text) for pair in PAIRS for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    assert "only completed turns are exported; left out: 1 failed, 1 cancelled" in done.err
    (tmp_path / "f").write_text(done.out)
    assert mino.run("session", "import", "copy", "f", "--from", "messages").status == 0
    assert [(turn.user, turn.assistant) for turn in turns_of(saved_in(mino.home)["copy"])] == list(PAIRS)


def test_responses_are_what_the_next_request_starts_with(mino: Program) -> None:
    items = [{"type": "reasoning", "id": "r", "encrypted_content": "x"}, {"type": "message", "role": "assistant"}]
    items[1]["content"] = [{"type": "output_text", "text": "答"}]  # type: ignore[assignment]
    records: tuple[Record, ...] = (
        user_message(1, "a" * 32, "q"),
        assistant_message(2, "a" * 32, "答", items),
        turn_end(3, "a" * 32, "completed"),
    )
    make_home(mino.home, b"".join(encode(record) for record in records))
    done = mino.run("history", "export", "--format", "responses")
    assert done.json == mino.run("history", "show", "--context").json
    assert [item["type"] for item in done.json] == ["message", "reasoning", "message"]


def test_text(mino: Program) -> None:
    make_home(mino.home, MIXED)
    done = mino.run("history", "export", "--format", "text")
    assert done.out == (
        "You> 你好，我是张三\n\nAssistant> 你好，张三 😀\n\nYou> second\nquestion\n\nAssistant> second answer\n\n"
    )


def test_markdown_keeps_each_text_in_a_quote(mino: Program) -> None:
    wild = "# not a heading of ours\r\n```python\nopen fence\r## Turn 9\n<!-- open"
    make_home(mino.home, completed((wild, wild), PAIRS[0]))

    out = mino.run("history", "export").out

    outside = [line for line in out.split("\n") if not line.startswith(">")]
    headings = [line for line in outside if line.startswith("#")]
    assert [heading.split(",")[0] for heading in headings] == ["## Turn 1", "## Turn 2"]
    assert [line for line in outside if line and line not in headings] == ["**You**", "**Assistant**"] * 2
    assert "\r" not in out
    assert out.count("> ```python\n> open fence\n> ## Turn 9\n> <!-- open\n") == 2


def test_last_and_one_turn(mino: Program) -> None:
    make_home(mino.home, MIXED)
    assert [each["content"] for each in mino.run("history", "export", "-n", "1", "--format", "messages").json] == [
        *PAIRS[1]
    ]
    assert mino.run("history", "export", "-n", "0", "--format", "messages").json == []
    assert [each["content"] for each in mino.run("history", "export", "-n", "9", "--format", "messages").json] == [
        text for pair in PAIRS for text in pair
    ]
    one = mino.run("history", "export", "--turn", "3", "--format", "messages")
    assert ([each["content"] for each in one.json], one.err) == ([*PAIRS[1]], "")


@pytest.mark.parametrize(("turn", "why"), [("2", "turn 2 is failed"), ("9", "there is no turn '9'")])
def test_a_turn_that_cannot_be_exported(mino: Program, turn: str, why: str) -> None:
    make_home(mino.home, MIXED)
    done = mino.run("history", "export", "--turn", turn)
    assert (done.status, done.out, why in done.err) == (66, "", True)


@pytest.mark.parametrize(("form", "out"), [("markdown", ""), ("text", ""), ("messages", "[]\n"), ("responses", "[]\n")])
def test_no_conversation_yet(mino: Program, form: str, out: str) -> None:
    done = mino.run("history", "export", "--format", form)
    assert (done.status, done.out, done.err) == (0, out, "mino: there is no conversation yet\n")
    assert not mino.home.exists()


def test_an_invalid_session_is_refused(mino: Program) -> None:
    make_home(mino.home, completed(PAIRS[0]) + b"{]\n" + MIXED)
    done = mino.run("history", "export")
    assert (done.status, done.out, "line 4" in done.err) == (65, "", True)


def test_an_unfinished_session_is_exported_and_told(mino: Program) -> None:
    make_home(mino.home, completed(PAIRS[0]) + encode(user_message(4, "a" * 32, "open?")) + b'{"v"')
    done = mino.run("history", "export", "--format", "messages")
    assert (done.status, len(done.json)) == (0, 2)
    assert "left out: 1 open" in done.err
    assert "torn-tail" in done.err


def test_an_unknown_format_is_a_usage_mistake(mino: Program) -> None:
    assert mino.run("history", "export", "--format", "pdf").status == 2


def test_the_messages_are_json_for_any_text(mino: Program) -> None:
    text = 'quotes " and \\ and \u2028 and \x00 and \x1b[31m'
    make_home(mino.home, completed((text, text)))
    done = mino.run("history", "export", "--format", "messages")
    assert [each["content"] for each in json.loads(done.out)] == [text, text]
