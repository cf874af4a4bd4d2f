"""`mino ask` that goes well: what is shown, what is sent, what is on disk; and a dry run that does none of it."""

import json
import os
import pty

import jsonschema
import pytest

from tests import homes
from tests.server import Reply, ScriptedServer, completed, delta, ended, events, message
from tests.system.program import ROOT, Program, finish, read_until, sent_texts, two_turns

ANSWER = json.loads((ROOT / "schemas" / "answer.v1.schema.json").read_text())
TURN = ["user_message", "assistant_message", "completed"]


def test_an_answer_is_shown_and_saved_with_its_end(mino: Program, server: ScriptedServer) -> None:
    ended = mino.run("ask", "法国的首都是哪里?")
    assert (ended.status, ended.out, ended.err) == (0, "巴黎 🗼\n", "")
    question, answer, end = mino.records()
    assert (question["text"], answer["text"], end["status"]) == ("法国的首都是哪里?", "巴黎 🗼", "completed")
    assert answer["output"] == [message("巴黎 🗼")]
    assert {record["turn_id"] for record in (question, answer, end)} == {question["turn_id"]}
    assert "法国".encode() in mino.session.read_bytes()  # as itself, not as escapes


def test_the_request_is_what_the_specification_says(mino: Program, server: ScriptedServer) -> None:
    mino.home.mkdir(mode=0o700)
    (mino.home / "SOUL.md").write_bytes(b"\xef\xbb\xbfBe short.\n")
    mino.run("ask", "--model", "m", "one")
    mino.run("ask", "--model", "m", "two")
    first, second = server.requests
    assert (first.method, first.path) == ("POST", "/v1/responses")
    assert "authorization" not in first.headers
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]}
    assert first.json == {
        "model": "m",
        "instructions": "Be short.\n",
        "input": [asked],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    assert second.json["input"][:2] == [asked, message("巴黎 🗼")]
    assert sent_texts(second.json) == ["one", "巴黎 🗼", "two"]


def test_text_is_shown_as_it_arrives_into_a_pipe_too(mino: Program) -> None:
    import threading

    gate = threading.Event()
    with ScriptedServer(events(delta("first"), gate, delta(" second"), ended())) as server:
        process = mino.start("ask", "q", server=server)
        assert read_until(process.stdout, b"first") == b"first"
        gate.set()
        rest = finish(process)
    assert (rest.status, rest.out) == (0, " second\n")


@pytest.mark.parametrize(("text", "shown"), [("one\n", "one\n"), ("two\n\n", "two\n\n"), ("three ", "three \n")])
def test_a_newline_is_added_only_where_there_is_none(mino: Program, text: str, shown: str) -> None:
    with ScriptedServer(completed(text)) as server:
        assert mino.run("ask", "q", server=server).out == shown
    assert mino.records()[1]["text"] == text


def test_a_refusal_is_a_completed_answer(mino: Program) -> None:
    item = {**message(""), "content": [{"type": "refusal", "refusal": "I cannot help."}]}
    spoken = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I cannot help."}
    with ScriptedServer(events(spoken, ended(output=[item])), always=completed("ok")) as server:
        answer = mino.run("ask", "q", server=server)
        mino.run("ask", "again", server=server)
    assert (answer.status, answer.out) == (0, "Model refused: I cannot help.\n")
    assert mino.records()[1]["text"] == "I cannot help."


def test_json_is_one_object_after_its_schema(mino: Program, server: ScriptedServer) -> None:
    answer = mino.run("ask", "--json", "q")
    jsonschema.validate(answer.json, ANSWER)
    assert answer.json == {
        "turn_id": mino.records()[0]["turn_id"],
        "session": None,
        "status": "completed",
        "text": "巴黎 🗼",
        "parsed": None,
        "refusal": False,
        "model": "m-1",
        "response_id": "resp_1",
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        "output": [message("巴黎 🗼")],
        "error": None,
    }


def test_json_without_a_surrogate_half_is_utf8(mino: Program) -> None:
    text = "half \ud83d"
    with ScriptedServer(completed(text)) as server:
        answer = mino.run("ask", "--json", "q", server=server)
    assert answer.status == 0 and answer.json["text"] == "half \ufffd"
    assert answer.json["output"][0]["content"][0]["text"] == "half \ufffd"
    assert mino.records()[1]["text"] == "half \ufffd"


INCOMPLETE = events(delta("half an ans"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))


def test_an_incomplete_answer_is_shown_and_its_turn_failed(mino: Program) -> None:
    with ScriptedServer(INCOMPLETE, completed("whole")) as server:
        answer = mino.run("ask", "q", server=server)
        mino.run("ask", "again", server=server)
    assert (answer.status, answer.out) == (3, "half an ans\n")
    assert answer.err == "mino: the service cut the answer short: max_output_tokens\n"
    assert mino.types() == ["user_message", "failed", *TURN]
    assert sent_texts(server.requests[1].json) == ["again"]


def test_an_incomplete_answer_as_json_has_the_partial_text(mino: Program) -> None:
    with ScriptedServer(INCOMPLETE) as server:
        answer = mino.run("ask", "--json", "q", server=server)
    jsonschema.validate(answer.json, ANSWER)
    assert (answer.status, answer.json["status"], answer.json["text"]) == (3, "incomplete", "half an ans")


@pytest.mark.parametrize(
    ("context", "texts"),
    [("all", ["one", "A1", "two", "A2"]), ("none", []), ("1", ["two", "A2"]), ("9", ["one", "A1", "two", "A2"])],
)
def test_context_chooses_how_many_turns_are_sent(mino: Program, context: str, texts: list[str]) -> None:
    mino.write_session(two_turns())
    ended = mino.run("ask", "--context", context, "--dry-run", "now")
    assert sent_texts(ended.json) == [*texts, "now"]
    with ScriptedServer(completed("A3")) as server:
        assert mino.run("ask", "--context", context, "now", server=server).status == 0
    assert server.requests[0].json == ended.json


@pytest.mark.parametrize("context", ["all", "none", "1", "600B"])
def test_a_dry_run_says_how_large_the_context_is(mino: Program, context: str) -> None:
    mino.write_session(two_turns())  # there is a failed one too
    ended = mino.run("ask", "--context", context, "--dry-run", "now")
    items = ended.json["input"][:-1]
    turns = len(items) // 2
    size = sum(len(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode()) for item in items)
    said, _, left_out = ended.err.removesuffix("\n").partition("; left out: ")
    assert said == f"mino: the context has {turns} turn{'' if turns == 1 else 's'}, {len(items)} items, {size} bytes"
    assert (
        left_out
        == {
            2: "1 turn (1 failed)",
            1: "2 turns (1 completed, 1 failed)",
            0: "3 turns (2 completed, 1 failed)",
        }[turns]
    )
    shown = mino.run("history", "show", "--context", env={"MINO_CONTEXT": context})
    assert (shown.json, shown.err) == (items, ended.err)
    assert mino.run("ask", "--no-history", "--dry-run", "q").err == "mino: the context has 0 turns, 0 items, 0 bytes\n"


def test_context_of_a_size_is_the_newest_whole_turns(mino: Program) -> None:
    mino.write_session(homes.completed(*((f"问{n}", "🗼" * 100 * (n == 1)) for n in range(4))))
    whole = mino.run("history", "show", "--context").json
    sizes = [len(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode()) for item in whole]
    last_two = sum(sizes[-2:])  # an empty answer has no item
    for size, kept in ((last_two, 2), (last_two - 1, 1), (sum(sizes) - 1, 4), (sum(sizes), 5)):
        with ScriptedServer(always=completed("x")) as server:
            assert mino.run("ask", "--context", f"{size}B", "now", server=server).status == 0
            assert server.requests[0].json["input"][:-1] == whole[len(whole) - kept :]
        mino.run("history", "forget", "--last")


def test_a_dry_run_sends_and_writes_nothing(mino: Program, server: ScriptedServer) -> None:
    shown = mino.run("ask", "--dry-run", "q")
    assert shown.status == 0 and sent_texts(shown.json) == ["q"]
    assert not server.connections and not mino.home.exists()
    del mino.environ["OPENAI_BASE_URL"]
    assert mino.run("ask", "--dry-run", "q").raw_out == shown.raw_out  # needs no key


def test_a_dry_run_shows_the_context_after_recovery(mino: Program) -> None:
    data = two_turns() + b'{"v":1,"seq":9,"type":"user_mess'
    path = mino.write_session(data)
    before = sorted(mino.home.rglob("*"))
    ended = mino.run("ask", "--dry-run", "now")
    assert sent_texts(ended.json) == ["one", "A1", "two", "A2", "now"]
    assert path.read_bytes() == data and sorted(mino.home.rglob("*")) == before


def test_a_dry_run_on_a_terminal_escapes_control_characters(mino: Program) -> None:
    master, slave = pty.openpty()
    process = mino.start("ask", "--dry-run", "red \x1b[31m and \x9b and \u202e", stdout=slave)
    os.close(slave)
    shown = os.read(master, 65536)
    while b"\n" not in shown:
        shown += os.read(master, 65536)
    finish(process)
    os.close(master)
    assert not {0x1B, 0x9B}.intersection(shown) and "\u202e" not in shown.decode()
    assert sent_texts(json.loads(shown)) == ["red \x1b[31m and \x9b and \u202e"]


def test_an_answer_is_visible_on_a_terminal_and_exact_in_a_pipe(mino: Program) -> None:
    text = "\x1b]0;title\x07 巴黎"
    master, slave = pty.openpty()
    with ScriptedServer(always=completed(text)) as server:
        process = mino.start("ask", "q", server=server, stdout=slave)
        os.close(slave)
        finish(process)
        assert mino.run("ask", "q", server=server).out == text + "\n"
    assert os.read(master, 65536).decode() == "\\x1b]0;title\\x07 巴黎\r\n"
    os.close(master)


@pytest.mark.parametrize("home", ["", "/dev/null/no home", "/proc/no such home"])
def test_no_history_needs_no_home(mino: Program, server: ScriptedServer, home: str) -> None:
    for variable in ("HOME", "MINO_HOME"):
        mino.environ[variable] = home
    answer = mino.run("ask", "--no-history", "--json", "q")
    assert (answer.status, answer.err) == (0, "")
    jsonschema.validate(answer.json, ANSWER)
    assert answer.json["turn_id"] is None and answer.json["text"] == "巴黎 🗼"


def test_no_history_neither_reads_nor_writes_one(mino: Program, server: ScriptedServer) -> None:
    path = mino.write_session(b"not a journal at all\n")
    assert mino.run("ask", "--no-history", "q").status == 0
    assert path.read_bytes() == b"not a journal at all\n"
    assert sorted(path.name for path in mino.home.iterdir()) == ["sessions"]
    assert sent_texts(server.requests[0].json) == ["q"]


def test_a_whole_response_in_json_is_an_answer_too(mino: Program) -> None:
    whole = ended(output=[message("whole")])["response"]
    reply = Reply([json.dumps(whole).encode()], 200, {"content-type": "application/json"}, "length")
    with ScriptedServer(reply) as server:
        answer = mino.run("ask", "q", server=server)
    assert (answer.status, answer.out) == (0, "whole\n")
    assert mino.types() == TURN
