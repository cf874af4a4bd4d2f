"""`mino config`: the settings in force, and what works at services of every kind."""

import time
from typing import Any

import pytest

from tests.server import Recorded, Reply, ScriptedServer, body, completed, error, events, json_reply
from tests.server import ended as terminal
from tests.system.program import Program

LIST = json_reply({"object": "list", "data": [{"id": "m-1"}, {"id": "模型 2"}, {"no": 1}]})


def service(answer: Reply, models: Reply = LIST) -> Any:
    """A server that answers the question of the check so, and the list of models so."""
    return lambda asked: models if asked.method == "GET" else answer


def check(mino: Program, script: Any, *words: str) -> tuple[Any, ScriptedServer]:
    with ScriptedServer(always=script) as server:
        return mino.run("config", "check", "-m", "m-1", *words, server=server), server


def test_show_prints_each_setting_with_its_source_and_no_key(mino: Program, tmp_path: Any) -> None:
    mino.home.mkdir(mode=0o700)
    (mino.home / "SOUL.md").write_text("soul")
    (mino.home / "config.toml").write_text(
        "service = '阿里'\nwait = 5\n[options]\ntemperature = 0.5\nheaders = {Authorization = 'sk-1'}\n"
        "[services.'阿里']\nbase_url = 'https://example.com/v1?k=sk-2'\nmodel = 'qwen'\napi_key_env = 'A_KEY'\n"
        "options = {top_p = 0.9, tools = [{type = 'mcp', authorization = 'sk-3'}]}\nmodels = {fast = 'qwen-turbo'}\n"
    )
    ended = mino.run("config", "show", "-m", "fast", env={"A_KEY": "sk-4", "MINO_TIMEOUT": "7"})
    assert ended.status == 0 and "sk-" not in ended.out + ended.err
    lines = ended.out.splitlines()
    for line in (
        'model = "qwen-turbo"  (--model)',
        "base_url = \"https://example.com/v1?…\"  (service '阿里')",
        'service = "阿里"  (config.toml)',
        "wait = 5  (config.toml)",
        "timeout = 7  (MINO_TIMEOUT)",
        "retries = 2  (default)",
        f'instructions = "{mino.home}/SOUL.md"  (default)',
        "api_key_env = A_KEY, which is set  (service '阿里')",
        "options.temperature = 0.5  (service '阿里')",
        "options.top_p = 0.9  (service '阿里')",
        "options.tools = …  (service '阿里')",
        "options.headers.Authorization = …  (service '阿里')",
    ):
        assert line in lines, ended.out
    assert not (mino.home / "sessions").exists()


def test_show_of_nothing_has_the_defaults_and_of_a_bad_file_says_the_line(mino: Program) -> None:
    ended = mino.run("config", "show")
    assert ended.status == 0 and 'model = "gpt-5.5"  (default)\n' in ended.out
    assert "api_key_env = OPENAI_API_KEY, which is not set  (default)\n" in ended.out
    local = mino.run("config", "show", "--local").out
    assert "local = true  (--local)\n" in local and "base_url" not in local and "api_key" not in local
    assert not mino.home.exists()
    mino.home.mkdir(mode=0o700)
    (mino.home / "config.toml").write_text("model = 'm'\n\n[services.x]\nbase-ulr = 'x'\n")
    for command in ("show", "check", "models"):
        bad = mino.run("config", command)
        assert bad.status == 78 and "config.toml' line 4: unknown setting 'base-ulr' in [services.x]" in bad.err
        assert "hint: did you mean 'base_url'?" in bad.err


def test_models_are_listed_one_a_line(mino: Program) -> None:
    with ScriptedServer(always=service(completed("x"))) as server:
        ended = mino.run("config", "models", server=server, env={"OPENAI_API_KEY": "sk-1"})
        assert (ended.status, ended.out) == (0, "m-1\n模型 2\n")
        [asked] = server.requests
    assert (asked.method, asked.path, asked.headers["authorization"]) == ("GET", "/v1/models", "Bearer sk-1")
    assert "content-type" not in asked.headers and asked.body == b""


@pytest.mark.parametrize(
    ("reply", "status", "said"),
    [
        (error(404, "no"), 69, "has no list of models"),
        (error(405, "no"), 69, "has no list of models"),
        (body(b"<html>hi", "text/html"), 69, "something else than a list"),
        (json_reply({"models": "x"}), 69, "something else than a list"),
        (body(b"", None), 69, "something else than a list"),
        (error(401, "no"), 77, "no key was sent"),
        (error(500, "broken"), 69, "answered 500: broken"),
        (Reply(status=200, before=[3.0]), 69, "no data"),
    ],
)
def test_a_service_without_a_list_is_told(mino: Program, reply: Reply, status: int, said: str) -> None:
    with ScriptedServer(always=reply) as server:
        ended = mino.run("config", "models", "--timeout", "0.5", server=server)
    assert (ended.status, ended.out) == (status, "") and said in ended.err


def test_check_of_a_service_that_has_everything(mino: Program) -> None:
    ended, server = check(mino, service(completed('{"ok": true}')))
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        f"service: no name, at {server.url}",
        "reachable: yes",
        "models: 2 in the list",
        "key: none was sent",
        "model: 'm-1' answers",
        "streaming: yes",
        "schema: yes",
    ]
    sent = server.requests[1].json
    assert (sent["max_output_tokens"], sent["text"]["format"]["strict"], sent["stream"]) == (16, True, True)
    assert not mino.home.exists()


WHOLE = {"object": "response", "status": "completed", "output": []}


def whole(text: str) -> Reply:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return json_reply({"object": "response", "status": "completed", "output": [message]})


def refusing(asked: Recorded) -> Reply:
    if asked.method == "GET":
        return error(404, "no")
    return error(400, "Unknown parameter", param="text.format") if "text" in asked.json else completed("{}")


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        (service(whole('{"ok": true}')), ["streaming: no, the answer comes at its end", "schema: yes"]),
        (service(completed("Sure!")), ["streaming: yes", "schema: ignored; Mino checks the answer in any case"]),
        (refusing, ["has no list of models", "schema: refused; Mino sends the schema in the instructions"]),
        (service(events(terminal("incomplete", output=[]))), ["schema: taken; the answer of 16 tokens was too short"]),
        (
            service(completed("{}"), json_reply({"data": [{"id": "x"}]})),
            ["'m-1' answers, though it is not in the list"],
        ),
    ],
)
def test_check_says_what_works(mino: Program, script: Any, lines: list[str]) -> None:
    ended, _ = check(mino, script)
    assert ended.status == 0, ended.err
    assert all(line in ended.out for line in lines), ended.out


@pytest.mark.parametrize(
    ("script", "words", "status", "said"),
    [
        (service(error(404, "model not found")), ["-m", "m1"], 66, "hint: did you mean 'm-1'?"),
        (service(error(404, "model not found")), ["-m", "zzzz"], 66, "hint: mino config models"),
        (service(error(404, "not here")), [], 69, "answered 404"),
        (service(error(401, "no"), error(401, "no")), [], 77, "no key was sent (401)"),
        (service(error(401, "no")), [], 77, "no key was sent (401)"),
        (service(error(500, "down")), [], 69, "answered 500: down"),
        (service(completed("x"), error(500, "down")), [], 69, "answered 500: down"),
        (service(Reply(before=[5.0])), ["--timeout", "0.5"], 69, "no data"),
    ],
)
def test_check_of_a_service_that_cannot_be_used(
    mino: Program, script: Any, words: list[str], status: int, said: str
) -> None:
    since = time.monotonic()
    ended, server = check(mino, script, *words)
    assert ended.status == status and said in ended.err, ended.err
    assert len(server.requests) <= 2 and time.monotonic() - since < 60  # nothing is tried again


def test_an_unreachable_service_and_a_missing_key(mino: Program) -> None:
    ended = mino.run("config", "check", "--base-url", "http://127.0.0.1:9/v1")
    assert ended.status == 69 and "cannot connect to 'http://127.0.0.1:9/v1/models'" in ended.err
    ended = mino.run("config", "check")
    assert ended.status == 78 and "no key" in ended.err


def test_a_conversation_has_no_place_here(mino: Program) -> None:
    for command in ("show", "check", "models"):
        ended = mino.run("--session", "x", "config", command)
        assert ended.status == 2 and "--session goes with ask, chat and history" in ended.err
    assert mino.run("config", "show", env={"MINO_SESSION": "../x"}).status == 0  # it is ignored
