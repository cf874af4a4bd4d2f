"""What the question is: words, `-`, standard input; and what is refused before anything is sent or written."""

import os

import pytest

from tests.server import ScriptedServer, wait_until
from tests.system.program import Program, Word, finish, sent_texts, unread


def question(mino: Program, words: list[Word], stdin: bytes = b"") -> str:
    """The question that a dry run shows."""
    ended = mino.run("ask", "--dry-run", *words, stdin=stdin)
    assert (ended.status, ended.err) == (0, "mino: the context has 0 turns, 0 items, 0 bytes\n")
    [text] = sent_texts(ended.json)
    return text


@pytest.mark.parametrize(
    ("words", "stdin", "expected"),
    [
        (["What", "is", "the capital?"], b"", "What is the capital?"),
        (["法国的首都是哪里?", "🗼"], b"", "法国的首都是哪里? 🗼"),
        (["--", "-5", "+", "3"], b"", "-5 + 3"),
        ([" a ", "b"], b"", " a  b"),
        (["one\ntwo\u2028three\n"], b"", "one\ntwo\u2028three\n"),
        (["words"], b"not read", "words"),
        ([], b"from a pipe\n", "from a pipe"),
        (["-"], "管道\r\n\n\r\n".encode(), "管道"),
        (["-"], b"\n  first\n\nsecond\r", "\n  first\n\nsecond\r"),
        (["Summarise:", "-"], b"the text\n", "Summarise:\n\nthe text"),
        (["-", "Translate", "this"], "你好 🐕\n".encode(), "Translate this\n\n你好 🐕"),
        (["-", "-"], b"once", "once"),
        (["words", "-"], b"", "words"),
        (["words", "-"], b"\r\n\n", "words"),
        (["", "-"], b"input", "input"),
    ],
)
def test_the_question_is_words_and_input(mino: Program, words: list[Word], stdin: bytes, expected: str) -> None:
    assert question(mino, words, stdin) == expected


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "en_US.ISO-8859-1"])
def test_words_are_utf8_in_every_locale(mino: Program, locale: str) -> None:
    mino.environ["LC_ALL"] = locale
    assert question(mino, ["巴黎", "🗼"]) == "巴黎 🗼"


@pytest.mark.parametrize(
    ("words", "stdin", "status", "said"),
    [
        ([], b"", 2, "empty"),
        ([""], b"ignored", 2, "empty"),
        ([" ", "\t\u3000"], b"", 2, "empty"),
        (["-"], b"\n \r\n", 2, "empty"),
        ([], b"a\0b", 65, "NUL at byte 1"),
        (["word", "-"], b"\0", 65, "NUL at byte 6"),
        ([b"caf\xe9"], b"", 65, "0xe9 at byte 3"),
        (["é", b"\xff"], b"", 65, "0xff at byte 3"),
        (["好", "-"], b"ok \xf0\x9f\x92", 65, "0xf0 at byte 8"),
        ([], b"\xed\xa0\x80", 65, "0xed at byte 0"),
        ([b"\xff", "-"], b"\xfe", 65, "0xff at byte 0"),
    ],
)
def test_what_is_no_question_is_refused(
    mino: Program, server: ScriptedServer, words: list[Word], stdin: bytes, status: int, said: str
) -> None:
    ended = mino.run("ask", *words, stdin=stdin)
    assert (ended.status, ended.out) == (status, "")
    assert said in ended.err and "hint: " in ended.err
    assert not server.connections and not mino.home.exists()


def test_a_terminal_as_input_is_a_usage_error(mino: Program) -> None:
    master, slave = os.openpty()
    ended = mino.run("ask", stdin=slave)
    os.close(master)
    os.close(slave)
    assert ended.status == 2 and "no question" in ended.err


@pytest.mark.parametrize("redirection", ["<&-", "0>/dev/null"])
def test_an_input_that_cannot_be_read_is_no_traceback(mino: Program, redirection: str) -> None:
    ended = mino.run_in_shell(f'exec "$@" {redirection}', "ask")
    assert ended.status == (2 if redirection == "<&-" else 74)
    assert not mino.home.exists()


def test_words_leave_an_open_pipe_alone(mino: Program, server: ScriptedServer) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"the loop's next line\n")
    ended = mino.run("ask", "words", stdin=reader)  # the writing end stays open: reading would wait for ever
    assert ended.status == 0 and sent_texts(server.requests[0].json) == ["words"]
    assert os.read(reader, 100) == b"the loop's next line\n"
    os.close(reader)
    os.close(writer)


def test_a_while_read_loop_runs_for_every_line(mino: Program, server: ScriptedServer) -> None:
    script = 'printf "%s\\n" one 二 "three 3" | while read -r line; do "$@" "$line" || exit; done'
    ended = mino.run_in_shell(script, "ask")
    assert (ended.status, ended.out) == (0, "巴黎 🗼\n" * 3)
    assert [sent_texts(request.json)[-1] for request in server.requests] == ["one", "二", "three 3"]


def test_a_pipe_that_does_not_block_is_waited_for(mino: Program) -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)  # as node.js leaves the pipes that it shares
    process = mino.start("ask", "--dry-run", stdin=reader)
    os.close(reader)
    os.write(writer, b"first ")
    wait_until(lambda: unread(writer) == 0)
    os.write(writer, b"second")
    os.close(writer)
    assert sent_texts(finish(process).json) == ["first second"]


def test_a_huge_question_goes_through_whole(mino: Program, server: ScriptedServer) -> None:
    text = "一行 of a log 🐕\n" * 100_000
    ended = mino.run("ask", "Summarise:", "-", stdin=text.encode())
    expected = "Summarise:\n\n" + text.rstrip("\n")
    assert ended.status == 0 and sent_texts(server.requests[0].json) == [expected]
    assert mino.records()[0]["text"] == expected


def test_a_million_empty_lines_are_dropped_in_no_time(mino: Program) -> None:
    assert question(mino, [], b"question" + b"\r\n" * 1_000_000) == "question"
