"""Files that go with a question: what is sent, what is kept, what is refused, and that nothing of one stays behind."""

import base64
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.server import ScriptedServer, completed, error
from tests.system.program import BOTH, Program

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(range(256))
GIF, WEBP = b"GIF89a" + b"\1" * 50, b"RIFF\x24\0\0\0WEBPVP8 " + b"\2" * 50
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + b"x" * 1200


def url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def text(of: str) -> dict[str, Any]:
    return {"type": "input_text", "text": of}


def picture(name: str, kind: str, data: bytes) -> list[dict[str, Any]]:
    return [text(f"{name}:\n"), {"type": "input_image", "image_url": url(kind, data), "detail": "auto"}]


def content(server: ScriptedServer, request: int = -1, item: int = -1) -> Any:
    return server.requests[request].json["input"][item]["content"]


@pytest.mark.parametrize(
    ("name", "data", "parts", "shown"),
    [
        ("plan.png", PNG, picture("plan.png", "image/png", PNG), "[picture plan.png, 70 bytes]"),
        ("图 🗺.txt", JPEG, picture("图 🗺.txt", "image/jpeg", JPEG), "[picture 图 🗺.txt, 267 bytes]"),
        ("a", GIF, picture("a", "image/gif", GIF), "[picture a, 56 bytes]"),
        ("b.png", WEBP, picture("b.png", "image/webp", WEBP), "[picture b.png, 66 bytes]"),
        (
            "paper.pdf",
            PDF,
            [{"type": "input_file", "filename": "paper.pdf", "file_data": url("application/pdf", PDF)}],
            "[PDF paper.pdf, 1 kB]",
        ),
        ("信.md", "\ufeff你好\nhello".encode(), [text("信.md:\n你好\nhello\n")], "[text 信.md, 13 bytes]"),
        ("x.svg", b"<svg/>", [text("x.svg:\n<svg/>\n")], "[text x.svg, 7 bytes]"),
        ("a\x1b[31m\u202eb", b"t", [text("a\\x1b[31m\\u202eb:\nt\n")], "[text a\\x1b[31m\\u202eb, 2 bytes]"),
        (b"\xff.txt", b"t", [text("\ufffd.txt:\nt\n")], "[text \ufffd.txt, 2 bytes]"),
    ],
)
def test_a_file_is_sent_and_kept_and_shown_for_what_it_is(
    mino: Program,
    server: ScriptedServer,
    tmp_path: Path,
    name: str | bytes,
    data: bytes,
    parts: list[dict[str, Any]],
    shown: str,
) -> None:
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    Path(os.fsdecode(path)).write_bytes(data)
    assert mino.run("ask", "-a", path, "这是什么?").status == 0
    whole = [*parts, text("这是什么?")]
    assert content(server) == whole
    question = mino.records()[0]
    assert (question["input"], question["text"]) == (whole, "这是什么?")
    assert mino.run("history", "show").out.split("\n")[1:3] == [f"> {shown}", "> 这是什么?"]
    assert mino.run("history", "show", "--json").json["input"] == whole
    os.unlink(path)
    assert mino.run("ask", "and now?").status == 0
    assert content(server, item=0) == whole and content(server) == [text("and now?")]
    assert "input" not in mino.records()[3]
    assert mino.run("history", "verify").status == 0


def test_several_files_go_in_their_order(mino: Program, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.txt").write_text("二")
    words = ["ask", "-a", "~/b.txt", "-a", str(tmp_path / "a.png"), "-a", "-", "q"]
    assert mino.run(*words, stdin=b"from a pipe").status == 0
    pieces = [
        text("b.txt:\n二\n"),
        *picture("a.png", "image/png", PNG),
        text("standard input:\nfrom a pipe\n"),
        text("q"),
    ]
    assert content(server) == pieces
    shown = mino.run("ask", "--dry-run", *words[1:], stdin=b"from a pipe")
    assert shown.json["input"][-1]["content"] == pieces
    dead = tmp_path / "fifo"
    os.mkfifo(dead)
    writer = subprocess.Popen(["sh", "-c", 'printf abc > "$0"', str(dead)])
    assert mino.run("ask", "-a", str(dead), "q").status == 0
    writer.wait()
    assert content(server) == [text("fifo:\nabc\n"), text("q")]


def test_standard_input_is_either_the_question_or_a_file(mino: Program, server: ScriptedServer) -> None:
    for words in (["-a", "-"], ["-a", "-", "-"], ["-a", "-", "q", "-"]):
        ended = mino.run("ask", *words, stdin=b"x")
        assert ended.status == 2 and "hint: " in ended.err
    assert server.requests == [] and not mino.home.exists()


def test_what_cannot_be_sent_is_refused_before_anything_is_written(
    mino: Program, server: ScriptedServer, tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "program").write_bytes(b"\x7fELF" + bytes(100))
    (tmp_path / "office.docx").write_bytes(b"PK\3\4" + bytes(100))
    (tmp_path / "latin").write_bytes("Grüße".encode("latin-1"))
    (tmp_path / "nul").write_bytes(b"a\0b")
    (tmp_path / "large").write_bytes(b"x" * 20_000_001)
    (tmp_path / "half").write_bytes(b"x" * 10_000_001)
    (tmp_path / "secret").touch(mode=0)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        cases = [
            ("empty", 65, "is empty"),
            ("program", 65, "a program"),
            ("office.docx", 65, "an office document"),
            ("latin", 65, "at byte 2 is not UTF-8"),
            ("nul", 65, "NUL at byte 1"),
            ("large", 65, "more than 20.0 MB"),
            (".", 65, "neither a regular file nor a pipe"),
            ("/dev/zero", 65, "neither a regular file nor a pipe"),
            ("s", 65, "neither a regular file nor a pipe"),
            ("none.png", 66, "does not exist"),
        ]
        if os.geteuid():
            cases.append(("secret", 77, "Permission denied"))
        for name, status, said in cases:
            ended = mino.run("ask", "-a", name, "q")
            assert ended.status == status and said in ended.err and f"'{name}'" in ended.err, ended.err
    two = mino.run("ask", "-a", "half", "-a", "half", "q")
    assert two.status == 65 and "more than 20.0 MB" in two.err
    endless = mino.run("ask", "-a", "-", "q", stdin=subprocess.PIPE, prefix=["sh", "-c", 'yes | "$@"', "sh"])
    assert endless.status == 65 and "standard input" in endless.err
    assert server.requests == [] and not mino.home.exists()
    (tmp_path / "whole").write_bytes(b"x" * 20_000_000)
    assert mino.run("ask", "-a", "whole", "q").status == 0


@BOTH
def test_a_forgotten_picture_leaves_no_byte(mino: Program, server: ScriptedServer, tmp_path: Path) -> None:
    data = PNG + os.urandom(300_000)
    (tmp_path / "plan.png").write_bytes(data)
    assert mino.run("ask", "before").status == 0
    assert mino.run("ask", "-a", "plan.png", "q").status == 0
    session = mino.session
    copied = session.read_bytes()
    (mino.home / "saved").mkdir(mode=0o700, exist_ok=True)
    (mino.home / "saved" / "副本.jsonl").write_bytes(copied)
    with session.open("ab") as file:
        file.write(b'{"v":1,')  # the next command makes a recovery copy
    assert mino.run("ask", "after").status == 0
    encoded = base64.b64encode(data)
    pieces = [encoded[n : n + 64] for n in range(0, len(encoded) - 64, 30_000)]
    assert sum(pieces[0] in path.read_bytes() for path in mino.home.rglob("*") if path.is_file()) >= 2
    assert mino.run("history", "forget", "2").status == 0
    for path in mino.home.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            assert not any(piece in held for piece in pieces), path
    records = map(json.loads, session.read_text().splitlines())
    assert [record["text"] for record in records if record["type"] == "user_message"] == ["before", "after"]


def test_a_conversation_lives_on_at_a_server_that_takes_no_pictures(mino: Program, tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(PNG)
    refusals = [error(500, "image input is not supported - hint: …"), error(400, "input_image is not supported")]
    for refusal in refusals:
        takes = completed("A1"), lambda asked, no=refusal: no if b"input_image" in asked.body else completed("A2")
        with ScriptedServer(takes[0], always=takes[1]) as server:
            assert mino.run("ask", "-a", "plan.png", "q", server=server).status == 0
            ended = mino.run("ask", "and?", server=server)
            assert (ended.status, ended.out) == (0, "A2\n"), ended.err
            assert content(server, item=0) == [text("plan.png:\n"), text("[picture, 70 bytes]"), text("q")]
        assert mino.records()[0]["input"][1]["type"] == "input_image"  # it stays
        mino.run("session", "new")
    with ScriptedServer(always=refusals[0]) as server:  # what is asked now is never left out
        ended = mino.run("ask", "-a", "plan.png", "--retries=0", "q", server=server)
        assert ended.status == 69 and "image input is not supported" in ended.err
        assert content(server)[1]["type"] == "input_image"


def test_files_are_exported_in_the_form_of_each_program(mino: Program, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(PNG)
    (tmp_path / "p.pdf").write_bytes(PDF)
    assert mino.run("ask", "-a", "plan.png", "-a", "p.pdf", "q").status == 0
    assert "> [picture plan.png, 70 bytes]\n> [PDF p.pdf, 1 kB]\n> q\n" in mino.run("history", "export").out
    assert mino.run("history", "export", "--format", "text").out.startswith("You> [picture plan.png, 70 bytes]\n")
    sent = content(server)
    assert mino.run("history", "export", "--format", "responses").json[0]["content"] == sent
    question = mino.run("history", "export", "--format", "messages").json[0]
    assert question["content"] == [
        {"type": "text", "text": "plan.png:\n"},
        {"type": "image_url", "image_url": {"url": url("image/png", PNG), "detail": "auto"}},
        {"type": "file", "file": {"filename": "p.pdf", "file_data": url("application/pdf", PDF)}},
        {"type": "text", "text": "q"},
    ]


def test_a_file_in_a_chat_goes_with_the_next_question(mino: Program, tmp_path: Path) -> None:
    (tmp_path / "my plan.png").write_bytes(PNG)
    (tmp_path / "b.txt").write_text("二")
    lines = ["/attach ~/my plan.png", "/attach none", "/attach b.txt", "/attach", "fails", "works", "/attach", "third"]
    lines += ["/attach b.txt", "/attach -", "fourth"]
    replies = [error(400, "no", param="model"), completed("A1"), completed("A2"), completed("A3")]
    with ScriptedServer(*replies) as server:
        ended = mino.run("chat", stdin="\n".join(lines).encode(), server=server)
        parts = [*picture("my plan.png", "image/png", PNG), text("b.txt:\n二\n")]
        asked = [each.json["input"][-1]["content"] for each in server.requests]
    assert asked == [
        [*parts, text("fails")],
        [*parts, text("works")],
        [text("third")],
        [text("fourth")],
    ]
    assert "attached to the next question: [picture my plan.png, 70 bytes]\n" in ended.out
    assert "[text b.txt, 4 bytes]\n/attach - drops them\n" in ended.out
    assert "no file is attached\n" in ended.out and "'none' does not exist" in ended.err


def test_show_of_a_large_picture_prints_one_line_of_it(mino: Program, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "large.png").write_bytes(PNG + bytes(5_000_000))
    assert mino.run("ask", "-a", "large.png", "q").status == 0
    shown = mino.run("history", "show", "-n", "1")
    assert "> [picture large.png, 5.0 MB]\n" in shown.out and len(shown.out) < 300


def test_a_kill_while_a_picture_is_saved_loses_no_turn(mino: Program, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "large.png").write_bytes(PNG + bytes(5_000_000))
    assert mino.run("ask", "first").status == 0
    for number in range(5):
        process = mino.start("ask", "-a", "large.png", f"q{number}", server=server)
        try:
            process.wait(0.15 + 0.05 * number)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert mino.run("ask", "last").status == 0
    asked = [record["text"] for record in mino.records() if record["type"] == "user_message"]
    assert asked[0] == "first" and asked[-1] == "last"
    assert mino.run("history", "verify").status == 0
    json.loads(mino.run("history", "show", "--turn", "1", "--json").out)
