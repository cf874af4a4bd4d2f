"""`ask -x`: the first code block, and nothing else, on stdout."""

import threading

import pytest

from tests.server import ScriptedServer, completed, delta, ended, error, events
from tests.system.program import Program, finish, read_until

ANSWER = (
    "Here it is:\n\n1. First\n\n   ````sh\n   echo '你好 🙂'\n     ```\n   ````\n\nAnd ```no```.\n\n```\nsecond\n```\n"
)
BLOCK = "echo '你好 🙂'\n  ```\n"


@pytest.mark.parametrize("words", [[], ["--no-stream"]])
def test_only_the_first_block_is_printed_and_the_whole_answer_is_saved(mino: Program, words: list[str]) -> None:
    with ScriptedServer(completed(ANSWER)) as server:
        got = mino.run("ask", "-x", *words, "q", server=server)
    assert (got.status, got.out, got.err) == (0, BLOCK, "")
    assert mino.records()[1]["text"] == ANSWER


def test_the_block_comes_while_it_streams(mino: Program) -> None:
    gate = threading.Event()
    reply = events(delta("Text\n```py\nprint(1)\npri"), gate, delta("nt(2)\n``"), delta("`\nmore"), ended())
    with ScriptedServer(reply) as server:
        process = mino.start("ask", "-x", "q", server=server)
        assert read_until(process.stdout, b"print(1)\npri") == b"print(1)\npri"
        gate.set()
        rest = finish(process)
    assert (rest.status, rest.out) == (0, "nt(2)\n")


@pytest.mark.parametrize(
    ("answer", "block"),
    [
        ("~~~\r\na\r\n~~~\r\n", "a\n"),
        ("```\nnever closed", "never closed\n"),
        ("```\n```\n", ""),
        ("> ```\n> quoted\n> ```", "quoted\n"),
        ("```\r\n\r\nx\r\n```", "\nx\n"),
    ],
)
def test_fences_of_every_kind(mino: Program, answer: str, block: str) -> None:
    with ScriptedServer(completed(answer)) as server:
        got = mino.run("ask", "-x", "q", server=server)
    assert (got.status, got.out) == (0, block)


@pytest.mark.parametrize("words", [[], ["--no-stream"], ["--no-history"]])
def test_without_a_block_nothing_is_printed(mino: Program, words: list[str]) -> None:
    with ScriptedServer(completed("rm -rf ~ would be wrong. `inline` ``` no")) as server:
        got = mino.run("ask", "-x", *words, "q", server=server)
    assert (got.status, got.out) == (65, "") and "no fenced code block" in got.err
    if "--no-history" not in words:
        assert mino.types()[-1] == "completed"
        turn_id = mino.records()[0]["turn_id"]
        assert f"hint: mino history show --turn {turn_id}\n" in got.err


def test_a_cut_answer_is_3_all_the_same(mino: Program) -> None:
    replies = [
        events(delta(text), ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
        for text in ("```\nhalf", "no block")
    ]
    with ScriptedServer(*replies) as server:
        got = mino.run("ask", "-x", "q", server=server)
        assert (got.status, got.out) == (3, "half\n")
        got = mino.run("ask", "-x", "q", server=server)
        assert (got.status, got.out) == (3, "")


def test_a_stream_that_breaks_before_the_block_is_asked_again(mino: Program) -> None:
    with ScriptedServer(events(delta("Wait.\n```")), completed("```\nwhole\n```")) as server:
        got = mino.run("ask", "-x", "q", server=server)
        assert (got.status, got.out) == (0, "whole\n") and len(server.requests) == 2
        server_two = events(delta("```\nshown\n"))
    with ScriptedServer(server_two, completed("```\nnever\n```")) as server:
        got = mino.run("ask", "-x", "q", server=server)
        assert (got.status, got.out) == (69, "shown\n") and len(server.requests) == 1


def test_with_json_it_is_a_usage_error_and_a_failure_prints_nothing(mino: Program, server: ScriptedServer) -> None:
    assert mino.run("ask", "-x", "--json", "q").status == 2 and server.requests == []
    with ScriptedServer(error(401, "no")) as refusing:
        assert (got := mino.run("ask", "-x", "q", server=refusing)).status == 77 and got.out == ""
