"""What a person hands over, at every door alike: a path with `~`, a byte order mark, a home that can be none."""

import json
import os
import select
from pathlib import Path

import pytest

from tests.server import ScriptedServer
from tests.system.program import Program, Word, finish, sent_texts, two_turns

MARK = b"\xef\xbb\xbf"
EMPTY = "mino: the context has 0 turns, 0 items, 0 bytes\n"  # a dry run says it


def instructions(mino: Program, *words: Word, env: dict[str, str] | None = None) -> object:
    """The instructions that a dry run shows."""
    ended = mino.run("ask", "--dry-run", *words, "q", env=env)
    assert (ended.status, ended.err) == (0, EMPTY)
    return ended.json.get("instructions")


# `~`


@pytest.mark.parametrize(
    ("words", "variable"), [(["--home=~/dir/x"], ""), (["--home", "~/dir/x"], ""), ([], "~/dir/x"), ([], "~//dir/x/")]
)
def test_a_home_may_begin_with_a_tilde(
    mino: Program, server: ScriptedServer, tmp_path: Path, words: list[Word], variable: str
) -> None:
    ended = mino.run(*words, "ask", "q", env={"MINO_HOME": variable})
    assert (ended.status, ended.err) == (0, "")
    assert len(list((tmp_path / "dir" / "x" / "sessions").iterdir())) == 1
    assert not (tmp_path / "~").exists()


def test_instructions_may_begin_with_a_tilde_and_lie_beside_config_toml(mino: Program, tmp_path: Path) -> None:
    mino.home.mkdir(mode=0o700)
    (tmp_path / "S.md").write_text("of the home directory")
    (mino.home / "S.md").write_text("beside config.toml")
    (tmp_path / "cwd").write_text("in the current directory")
    config = mino.home / "config.toml"
    assert instructions(mino, "--instructions", "~/S.md") == "of the home directory"
    assert instructions(mino, env={"MINO_INSTRUCTIONS": "~/S.md"}) == "of the home directory"
    config.write_text('instructions = "~/S.md"')
    assert instructions(mino) == "of the home directory"
    config.write_text('instructions = "S.md"')
    assert instructions(mino) == "beside config.toml"
    assert instructions(mino, "--instructions", "cwd") == "in the current directory"
    assert instructions(mino, env={"MINO_INSTRUCTIONS": "cwd"}) == "in the current directory"
    config.write_text(f'instructions = "{tmp_path / "S.md"}"')
    assert instructions(mino) == "of the home directory"


def test_a_file_may_begin_with_a_tilde(mino: Program, tmp_path: Path) -> None:
    (tmp_path / "it.jsonl").write_bytes(two_turns())
    (tmp_path / "it.jsonl").chmod(0o600)
    (tmp_path / "m.json").write_text(
        json.dumps([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])
    )
    assert mino.run("history", "verify", "~/it.jsonl", "~/it.jsonl").status == 0
    assert mino.run("history", "recover", "~/it.jsonl").status == 0
    assert mino.run("session", "import", "n", "~/m.json", "--from", "messages").status == 0
    (tmp_path / "模型.gguf").touch()
    for words, env in ((["-m", "~/模型.gguf"], {}), ([], {"MINO_LOCAL_MODEL": "~/模型.gguf"})):
        ended = mino.run("ask", "--local", "q", *words, env=env)
        assert ended.status == 78 and (f"'{tmp_path}/模型.gguf' is not in the GGUF" in ended.err or "pip" in ended.err)
    assert not (tmp_path / "~").exists()


# A byte order mark


@pytest.mark.parametrize(
    ("words", "stdin", "question"),
    [
        ([], MARK + b"q\n", "q"),
        (["-"], MARK + "问".encode(), "问"),
        (["Explain:", "-"], MARK + b"the text", "Explain:\n\nthe text"),
        ([MARK + b"q"], b"", "q"),
        (["Explain:", MARK + b"text"], b"", "Explain: text"),
        (["a", "-"], MARK + b"\r\n", "a"),
        ([], b"q" + MARK, "q\ufeff"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_question(
    mino: Program, words: list[Word], stdin: bytes, question: str
) -> None:
    ended = mino.run("ask", "--dry-run", *words, stdin=stdin)
    assert (ended.status, sent_texts(ended.json)) == (0, [question])


def test_a_byte_order_mark_alone_is_an_empty_question(mino: Program) -> None:
    assert mino.run("ask", "--dry-run", stdin=MARK).status == 2
    assert mino.run("ask", "--dry-run", "-", stdin=MARK + b"\n").status == 2


def test_a_byte_order_mark_begins_a_file(mino: Program, server: ScriptedServer) -> None:
    mino.home.mkdir(mode=0o700)
    (mino.home / "config.toml").write_bytes(MARK + b'model = "x"\napi_key_command = ["cat", "key"]')
    (mino.home / "SOUL.md").write_bytes(MARK + b"soul")
    (mino.home.parent / "key").write_bytes(MARK + b"sk-1\r\n")
    assert mino.run("ask", "q").status == 0
    assert mino.run("ask", "q", env={"OPENAI_API_KEY": "\ufeffsk-2"}).status == 0
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer sk-1", "Bearer sk-2"]
    assert server.requests[0].json["model"] == "x" and server.requests[0].json["instructions"] == "soul"
    (mino.home / "config.toml").write_bytes(MARK + b"a\xff")
    assert "is not UTF-8 at byte 4" in mino.run("ask", "q").err


# A home that can be none


@pytest.mark.parametrize("below", ["", "/x", "/x/y"])
@pytest.mark.parametrize(
    "words",
    [["ask", "q"], ["chat"], ["history", "show"], ["history", "verify"], ["session", "list"], ["session", "new"]],
)
def test_a_home_that_is_a_file_or_lies_under_one(
    mino: Program, server: ScriptedServer, tmp_path: Path, words: list[Word], below: str
) -> None:
    (tmp_path / "file").write_bytes(b"precious")
    home = f"{tmp_path}/file{below}"
    ended = mino.run("--home", home, *words)
    assert (ended.status, ended.out) == (73, "")
    assert ended.err.startswith(
        f"mino: cannot use the home '{home}': '{tmp_path}/file' is not a directory\nhint: ls -ld "
    )
    assert (tmp_path / "file").read_bytes() == b"precious" and not server.connections
    assert mino.run("--home", home, "ask", "--no-history", "q").status == 0


# A pipe that is not read, a variable that is not read


@pytest.mark.parametrize(
    ("source", "words", "told"),
    [
        ("pipe", ["words"], True),
        ("pipe", ["--dry-run", "words"], True),
        ("pipe", ["words", "-"], False),
        ("pipe", [], False),
        ("null", ["words"], False),
        ("file", ["words"], False),
        ("terminal", ["words"], False),
        ("closed", ["words"], False),
    ],
)
def test_a_pipe_is_not_dropped_unseen(
    mino: Program, server: ScriptedServer, tmp_path: Path, source: str, words: list[Word], told: bool
) -> None:
    (tmp_path / "file").write_bytes(b"a file")
    master, slave = os.openpty()
    redirection = {
        "pipe": "printf 'a pipe' |",
        "null": "</dev/null",
        "file": "<file",
        "terminal": "<&2",
        "closed": "<&-",
    }
    script = f'{redirection[source]} "$@"'
    for stderr, seen in ((slave, told), (-1, False)):  # the same, where nobody sees it
        process = mino.start("ask", *words, prefix=["sh", "-c", script, "sh"], stderr=stderr)
        assert finish(process).status == 0
        if stderr == slave:
            said = os.read(master, 4096) if told and select.select([master], [], [], 30)[0] else b""
            said = said.replace(EMPTY.replace("\n", "\r\n").encode() if "--dry-run" in words else b" ", b" ").strip()
            assert (said == b"mino: standard input is not read; - reads it") is seen
    os.set_blocking(master, False)
    with pytest.raises(BlockingIOError):
        os.read(master, 1)  # nothing else was said
    os.close(slave)
    os.close(master)


def test_the_old_variable_of_openais_library_is_told(mino: Program, server: ScriptedServer) -> None:
    told = "mino: OPENAI_API_BASE is set, which Mino does not read; it reads OPENAI_BASE_URL\n"
    old = {"OPENAI_API_BASE": server.url}
    assert mino.run("ask", "q", env=old).err == ""  # OPENAI_BASE_URL is set too
    unset = mino.run("ask", "q", env=old | {"OPENAI_BASE_URL": ""})
    assert unset.status == 78 and unset.err.startswith(
        told + 'hint: export OPENAI_BASE_URL="$OPENAI_API_BASE"\nmino: no key'
    )
    assert mino.run("ask", "--base-url", server.url, "q", env=old | {"OPENAI_BASE_URL": ""}).err == ""
    assert mino.run("ask", "q", env={"OPENAI_API_BASE": "", "OPENAI_BASE_URL": ""}).err.startswith("mino: no key")
