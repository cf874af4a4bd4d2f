"""`ask --schema`: what is sent, what fits, and what the exit status says of it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.server import ScriptedServer, completed, error, events
from tests.server import ended as terminal
from tests.system.program import ROOT, Program

ANSWER = json.loads((ROOT / "schemas" / "answer.v1.schema.json").read_text())
SCHEMA = {
    "type": "object",
    "properties": {"名字": {"type": "string"}, "age": {"type": ["integer", "null"]}},
    "required": ["名字", "age"],
    "additionalProperties": False,
}
FITTING = '{"名字": "小明 🙂", "age": null}'


@pytest.fixture
def schema(mino: Program, tmp_path: Path) -> Path:
    path = tmp_path / "人 schema.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(SCHEMA, ensure_ascii=False).encode())
    return path


def ask(mino: Program, schema: Path, answer: str, *words: str) -> Any:
    with ScriptedServer(completed(answer)) as server:
        return mino.run("ask", "--schema", str(schema), *words, "谁？", server=server)


def test_an_answer_that_fits(mino: Program, schema: Path) -> None:
    with ScriptedServer(always=completed(FITTING)) as server:
        got = mino.run("ask", "--schema", schema.name, "谁？", server=server)
        assert (got.status, got.out, got.err) == (0, FITTING + "\n", "")
        sent = server.requests[0].json["text"]
        assert sent == {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}}
        whole = mino.run("ask", "--json", "--schema", schema.name, "谁？", server=server)
    jsonschema.validate(whole.json, ANSWER)
    assert whole.json["parsed"] == {"名字": "小明 🙂", "age": None} and whole.json["text"] == FITTING


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('{"名字": "小明", "age": "x"}', "$.age: 'x' is not of type 'integer', 'null'"),
        ('{"名字": "小明"}', "'age' is a required property"),
        ("小明", "$: not JSON: expecting value (line 1, column 1)"),
        ('{"名字": "a", "名字": "b", "age": 1}', "found a key twice"),
        ('{"名字": "a", "age": NaN}', "NaN is not JSON"),
        (FITTING + " Done.", "extra data"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_misfit_is_shown_and_saved_and_is_65(
    mino: Program, schema: Path, answer: str, said: str, as_json: bool
) -> None:
    got = ask(mino, schema, answer, *["--json"] * as_json)
    assert got.status == 65 and said in got.err and schema.name in got.err
    assert mino.types() == ["user_message", "assistant_message", "completed"]
    if as_json:
        jsonschema.validate(got.json, ANSWER)
        assert (got.json["status"], got.json["parsed"], got.json["text"]) == ("completed", None, answer)
    else:
        assert got.out == answer + "\n"


def test_json_in_a_code_block_is_a_misfit_and_x_checks_the_block(mino: Program, schema: Path) -> None:
    fenced = f"Here:\n```json\n{FITTING}\n```\n"
    assert ask(mino, schema, fenced).status == 65
    got = ask(mino, schema, fenced.removeprefix("Here:\n"))
    assert got.status == 65 and "hint: -x checks" in got.err
    got = ask(mino, schema, fenced, "-x")
    assert (got.status, got.out) == (0, FITTING + "\n")
    assert ask(mino, schema, "```\n{}\n```", "-x").status == 65
    assert ask(mino, schema, FITTING, "-x").status == 65  # there is no block


def test_a_refusal_does_not_fit_and_a_cut_answer_is_3(mino: Program, schema: Path) -> None:
    refusal = [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}]
    cut = events(terminal("incomplete", output=[]))
    with ScriptedServer(completed("", output=refusal), cut) as server:
        got = mino.run("ask", "--schema", str(schema), "q", server=server)
        assert (got.status, got.out) == (65, "Model refused: No.\n") and "refused" in got.err
        assert mino.run("ask", "--schema", str(schema), "q", server=server).status == 3


def test_a_server_that_refuses_the_format_is_asked_once_more(mino: Program, schema: Path) -> None:
    with ScriptedServer(error(400, "Unknown field", param="text.format"), completed(FITTING)) as server:
        got = mino.run("ask", "--schema", str(schema), "-s", "短", "q", server=server)
        assert got.status == 0 and "refuses text.format" in got.err
        first, second = (each.json for each in server.requests)
    assert "text" not in second and first["instructions"] == "短"
    assert second["instructions"].startswith("短\n\n") and "名字" in second["instructions"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"{", "line 1, column 2"),
        (b"[1]", "expected an object"),
        (b'{"type": "frob"}', "'frob'"),
        (b'{"$ref": "http://127.0.0.1:9/x"}', "is not in it"),
        (b'{"$ref": "file:///etc/passwd"}', "is not in it"),
        (b'{"pattern": "("}', "regex"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b'{"a":1,"a":2}', "twice"),
    ],
)
def test_a_file_that_is_no_schema_is_65_before_anything_is_sent(
    mino: Program, server: ScriptedServer, tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "s.json").write_bytes(content)
    got = mino.run("ask", "--schema", "s.json", "q")
    assert got.status == 65 and said in got.err and "s.json" in got.err
    assert server.requests == [] and not mino.home.exists()


def test_other_bad_files_and_another_format(mino: Program, server: ScriptedServer, schema: Path) -> None:
    assert mino.run("ask", "--schema", "none.json", "q").status == 66
    assert mino.run("ask", "--schema", "", "q").status == 66
    assert mino.run("ask", "--schema", "/dev", "q").status == 74
    got = mino.run("ask", "--schema", str(schema), "-o", 'text.format={"type":"json_object"}', "q")
    assert got.status == 2 and "text.format" in got.err and server.requests == []


def test_a_check_that_takes_too_long_is_given_up(mino: Program, tmp_path: Path) -> None:
    (tmp_path / "slow.json").write_text('{"type": "string", "pattern": "^(a+)+$"}')
    got = ask(mino, tmp_path / "slow.json", '"' + "a" * 50 + '!"')
    assert got.status == 65 and "takes longer than 10 s" in got.err
    assert mino.types()[-1] == "completed"
