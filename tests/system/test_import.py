"""`mino session import`: the files of the other two programs, and plain messages, as named conversations."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mino.journal.lock import lock_exclusive
from tests.homes import completed, make_home, saved_in, session_of, turns_of, write
from tests.system.program import Ended, Program, limited

EINO = """\
{"type":"session","id":"083d16da-6b13-4fe6-afb0-c45d8f490ce1","created_at":"2026-03-24T10:00:00Z"}
{"role":"user","content":"你好，我是张三"}
{"role":"assistant","content":"你好，张三，很高兴认识你。"}
{"role":"user","content":"我叫什么名字？"}
{"role":"assistant","content":"你叫张三。"}
"""
MESSAGES = [{"role": "user", "content": "Name a colour."}, {"role": "assistant", "content": "Blue. 🔵"}]
CHECKPOINT = {"savedAt": "2026-03-24T10:00:00.000Z", "turnCount": 1, "history": MESSAGES}
ARRAY = json.dumps(MESSAGES)
LINES = "".join(json.dumps(message) + "\n" for message in MESSAGES)


def run_import(mino: Program, content: str | bytes, kind: str, name: str = "n", **options: Any) -> Ended:
    """Import a file of this content."""
    file = mino.home.parent / "file"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return mino.run("session", "import", name, "file", "--from", kind, **options)


def pairs(mino: Program, name: str = "n") -> list[tuple[str, str | None]]:
    """Questions and answers of the conversation, which must be clean, all turns completed."""
    turns = turns_of(saved_in(mino.home)[name])
    assert {turn.status for turn in turns} <= {"completed"}
    return [(turn.user, turn.assistant) for turn in turns]


def test_the_second_seed(mino: Program) -> None:
    done = run_import(mino, EINO, "eino", "张三")
    assert (done.status, done.out) == (0, "")
    assert done.err == "mino: imported 2 turns as '张三'\nhint: mino session open '张三'\n"
    assert pairs(mino, "张三") == [
        ("你好，我是张三", "你好，张三，很高兴认识你。"),
        ("我叫什么名字？", "你叫张三。"),
    ]
    assert mino.run("session", "load", "张三").status == 0
    assert session_of(mino.home) == saved_in(mino.home)["张三"]
    assert (mino.home / "saved" / "张三.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("kind", "content"), [("json", json.dumps(CHECKPOINT, indent=2)), ("messages", LINES)])
def test_the_third_seed_and_plain_messages(mino: Program, kind: str, content: str) -> None:
    done = run_import(mino, content, kind)
    assert done.status == 0
    assert done.err.startswith("mino: imported 1 turn as 'n'\n")
    assert pairs(mino) == [("Name a colour.", "Blue. 🔵")]


def test_what_cannot_be_paired_is_told_and_the_rest_comes_in(mino: Program) -> None:
    broken = EINO.replace(
        '{"role":"user","content":"我叫', '{"role":"tool","content":"x"}\n{"role":"user","content":"我叫'
    )
    done = run_import(mino, broken + '{"role":"assistant","content":"多余"}\n{"role":"us', "eino")
    assert done.status == 0
    assert done.err.splitlines()[:3] == [
        "mino: 'file' line 4: left out a tool message",
        "mino: 'file' line 7: left out an answer without a question before it",
        "mino: 'file' line 8: left out a line that is not JSON",
    ]
    assert len(pairs(mino)) == 2


@pytest.mark.parametrize(
    ("kind", "content", "where"),
    [
        ("messages", LINES + '{"role":"us\n', "line 3 (byte 8 of the line) is not JSON"),
        ("messages", '{"role":"user","content":"q"}', "has no question with an answer"),
    ],
)
def test_a_file_that_is_not_of_that_kind(mino: Program, kind: str, content: str, where: str) -> None:
    done = run_import(mino, content, kind)
    assert (done.status, where in done.err) == (65, True), done.err
    assert saved_in(mino.home) == {}


def test_a_name_that_is_taken(mino: Program) -> None:
    taken = completed(("q", "a"))
    make_home(mino.home, None, n=taken)
    done = run_import(mino, ARRAY, "messages")
    assert done.status == 73
    assert "a conversation 'n' exists already" in done.err
    assert saved_in(mino.home) == {"n": taken}


def test_files_that_cannot_be_read(mino: Program, tmp_path: Path) -> None:
    assert mino.run("session", "import", "n", "nowhere", "--from", "json").status == 66
    assert mino.run("session", "import", "n", ".", "--from", "json").status == 74
    assert mino.run("session", "import", "n", "/dev/zero", "--from", "json").status == 74
    assert mino.run("session", "import", "n", "-", "--from", "json", stdin=b"{").status == 65
    assert mino.run("session", "import", "n", "nowhere").status == 2
    assert saved_in(mino.home) == {}


def test_a_link_that_the_user_names_is_followed(mino: Program, tmp_path: Path) -> None:
    write(tmp_path / "real", ARRAY.encode())
    (tmp_path / "link").symlink_to("real")
    assert mino.run("session", "import", "n", "link", "--from", "messages").status == 0
    assert len(pairs(mino)) == 1


END = "status=$?; kill $! 2>&-; exit $status"  # a writer that was never read would wait for ever
PIPES = {
    "from standard input": 'cat file | "$@" -',
    "from a named pipe": f'mkfifo pipe; cat file > pipe & "$@" pipe; {END}',
    "from a pipe whose writer comes late": f'mkfifo pipe; (sleep 0.3; cat file) > pipe & "$@" pipe; {END}',
    "from a descriptor": 'cat file | "$@" /dev/fd/0',
    "from a file as standard input": '"$@" - < file',
}


@pytest.mark.parametrize("script", PIPES.values(), ids=list(PIPES))
def test_a_pipe_is_read_to_its_end(mino: Program, tmp_path: Path, script: str) -> None:
    many = [{**message, "content": "字" * 30_000} for message in MESSAGES] * 3  # more than a pipe holds
    write(tmp_path / "file", b"\xef\xbb\xbf" + json.dumps(many).encode())
    done = mino.run_in_shell(script, "session", "import", "n", "--from", "messages")
    assert done.status == 0, done.err
    assert pairs(mino) == [("字" * 30_000, "字" * 30_000)] * 3


def test_a_process_substitution_is_read(mino: Program) -> None:
    prefix = ["bash", "-c", '"$@" <(printf %s "$JSON")', "bash"]
    done = mino.run("session", "import", "n", "--from", "messages", prefix=prefix, env={"JSON": ARRAY})
    assert done.status == 0, done.err
    assert len(pairs(mino)) == 1


def test_what_mino_exports_is_imported_through_a_pipe(mino: Program) -> None:
    make_home(mino.home, completed(("q", "a"), ("问", "答")))
    script = '"$@" history export --format messages | "$@" session import n - --from messages'
    done = mino.run_in_shell(script)
    assert done.status == 0 and pairs(mino) == [("q", "a"), ("问", "答")]


def test_a_turn_with_a_nul_is_left_out_and_told(mino: Program) -> None:
    asked = [{"role": "user", "content": "a\0b"}, {"role": "assistant", "content": "fine"}]
    answered = [
        {"role": "user", "content": [{"text": "fine"}]},
        {"role": "assistant", "content": ["x", {"text": "\0"}]},
    ]
    done = run_import(mino, json.dumps([*asked, *MESSAGES, *answered]), "messages")
    assert done.status == 0
    assert done.err.splitlines()[:2] == [
        "mino: 'file' message 1: left out a turn with a NUL in it",
        "mino: 'file' message 5: left out a turn with a NUL in it",
    ]
    assert pairs(mino) == [("Name a colour.", "Blue. 🔵")]
    assert run_import(mino, json.dumps(asked), "messages", "none").status == 65


def test_a_full_disk_leaves_nothing_half_imported(mino: Program) -> None:
    many = json.dumps([{**message, "content": "字" * 100} for message in MESSAGES] * 100)
    done = run_import(mino, many, "messages", prefix=limited(9000))
    assert done.status == 74
    assert sorted(path for path in mino.home.rglob("*") if path.is_file()) == [
        mino.home / ".gitignore",
        mino.home / "saved" / "n.lock",
    ]


def test_a_session_in_use(mino: Program) -> None:
    make_home(mino.home, None)
    (mino.home / "saved").mkdir(mode=0o700)
    with closing(lock_exclusive(f"{mino.home}/saved/n.lock", 0)):
        assert run_import(mino, ARRAY, "messages").status == 75
    assert saved_in(mino.home) == {}
    with closing(lock_exclusive(f"{mino.home}/sessions.lock", 0)):
        assert run_import(mino, ARRAY, "messages").status == 0
