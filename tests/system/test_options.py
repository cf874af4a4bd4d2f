"""What goes into a request besides the question: options, instructions; and what is refused before anything is sent."""

import json

import pytest

from tests.server import ScriptedServer, completed, error
from tests.system.program import Program

CONFIG = """
[options]
temperature = 0.5
reasoning = { effort = "high", summary = "auto" }
[services.mine]
base_url = "URL"
model = "m-service"
[services.mine.options]
reasoning = { effort = "low" }
top_p = 0.9
"""


def configure(mino: Program, text: str) -> None:
    mino.home.mkdir(mode=0o700, exist_ok=True)
    (mino.home / "config.toml").write_text(text)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["temperature=0.2"], {"temperature": 0.2}),
        (["max_output_tokens=500"], {"max_output_tokens": 500}),
        (["reasoning.effort=low"], {"reasoning": {"effort": "low"}}),
        (['tools=[{"type":"web_search"}]'], {"tools": [{"type": "web_search"}]}),
        (["user=小明 🙂", "x=null", "metadata.a=1"], {"user": "小明 🙂", "metadata": {"a": 1}}),
        (["include=null"], {"include": ...}),
        (['include=["a"]'], {"include": ["a"]}),
    ],
)
def test_an_option_is_a_field_of_the_request(
    mino: Program, server: ScriptedServer, words: list[str], fields: dict[str, object]
) -> None:
    assert mino.run("ask", "q").status == 0
    plain = server.requests[0].json
    assert mino.run("ask", "--context", "none", *(f"--option={word}" for word in words), "q").status == 0
    wanted = {key: value for key, value in (plain | fields).items() if value is not ...}
    assert server.requests[1].json == wanted
    shown = mino.run("ask", "--dry-run", "--context", "none", *(f"-o{word}" for word in words), "q")
    assert shown.json == wanted


def test_options_are_merged_over_those_of_the_service_and_of_the_file(mino: Program, server: ScriptedServer) -> None:
    configure(mino, CONFIG.replace("URL", server.url))
    assert mino.run("ask", "--service", "mine", "-o", "reasoning.summary=null", "-o", "temperature=1", "q").status == 0
    sent = server.requests[0].json
    assert (sent["temperature"], sent["top_p"], sent["reasoning"]) == (1, 0.9, {"effort": "low"})
    assert sent["model"] == "m-service"
    assert mino.run("ask", "-o", "temperature=null", "q").status == 0
    sent = server.requests[1].json
    assert "temperature" not in sent and sent["reasoning"] == {"effort": "high", "summary": "auto"}
    said = mino.run("chat", stdin=b"q\n")
    assert said.status == 0 and server.requests[2].json["temperature"] == 0.5


@pytest.mark.parametrize("name", ["input", "instructions", "model", "stream", "store", "previous_response_id"])
def test_a_field_of_mino_s_own_is_a_usage_error_that_names_another_way(
    mino: Program, server: ScriptedServer, name: str
) -> None:
    ended = mino.run("ask", "-o", f"{name}=1", "q")
    assert ended.status == 2 and f"cannot set '{name}'" in ended.err and "hint: " in ended.err
    configure(mino, f"[options]\n{name} = 1")
    ended = mino.run("ask", "q")
    assert ended.status == 78 and f"cannot set '{name}'" in ended.err
    assert server.requests == [] and not (mino.home / "sessions").exists()


@pytest.mark.parametrize("words", [("-o", "x"), ("-o", "=1"), ("-o", 'a={"b":1,"b":2}'), ("-o", "a=1e999")])
def test_a_bad_option_is_refused_before_anything_is_sent(
    mino: Program, server: ScriptedServer, words: tuple[str, ...]
) -> None:
    assert mino.run("ask", *words, "q").status == 2
    assert server.requests == [] and not mino.home.exists()


def test_an_option_that_the_service_refuses_fails_the_turn_with_its_words(mino: Program) -> None:
    with ScriptedServer(error(400, "Unsupported parameter: 'temperature'", param="temperature")) as server:
        ended = mino.run("ask", "-o", "temperature=2", "q", server=server)
        assert ended.status == 69 and "Unsupported parameter: 'temperature'" in ended.err
        assert len(server.requests) == 1
    assert mino.types() == ["user_message", "failed"]


def test_instructions_on_the_command_line_go_before_soul_md(mino: Program, server: ScriptedServer) -> None:
    mino.home.mkdir(mode=0o700)
    (mino.home / "SOUL.md").write_text("soul")
    (mino.home / "other.md").write_text("other")
    given: list[tuple[list[str], dict[str, str], str | None]] = [
        ([], {}, "soul"),
        (["-s", "要简短。\n请。"], {}, "要简短。\n请。"),
        (["--system="], {}, None),
        (["-s", " \n"], {}, None),
        ([], {"MINO_SYSTEM": "variable"}, "variable"),
        ([], {"MINO_SYSTEM": ""}, "soul"),
        (["--instructions", str(mino.home / "other.md")], {"MINO_SYSTEM": "variable"}, "other"),
        (["-s", "flag"], {"MINO_INSTRUCTIONS": str(mino.home / "other.md")}, "flag"),
    ]
    for words, env, wanted in given:
        assert mino.run("ask", "--context=none", *words, "q", env=env).status == 0
        assert server.requests[-1].json.get("instructions") == wanted
    both = mino.run("ask", "-s", "a", "--instructions", "b", "q")
    assert both.status == 2 and "exclude each other" in both.err
    configure(mino, 'system = "a"\ninstructions = "b"\n')
    assert mino.run("ask", "q").status == 78


@pytest.mark.parametrize("switch", ["--no-stream", "MINO_STREAM=0", "config"])
def test_without_streaming_the_answer_comes_in_one_write(mino: Program, switch: str, tmp_path: object) -> None:
    env = dict([switch.split("=")]) if "=" in switch else {}
    if switch == "config":
        configure(mino, "stream = false")
    with ScriptedServer(completed("one two three four\nfive six")) as server:
        words = [switch] if switch.startswith("--") else []
        trace = f"{tmp_path}/trace"
        prefix = ["strace", "-f", "-e", "trace=write", "-e", "write=1", "-o", trace]
        import shutil

        if not shutil.which("strace"):
            pytest.skip("strace is not installed")
        ended = mino.run("ask", *words, "q", server=server, env=env, prefix=prefix)
    assert (ended.status, ended.out) == (0, "one two three four\nfive six\n")
    with open(trace) as file:
        writes = [line for line in file if " write(1, " in line]
    assert len(writes) == 1


def test_the_usage_is_a_line_on_stderr(mino: Program, server: ScriptedServer) -> None:
    import re

    ended = mino.run("ask", "--usage", "q")
    assert re.fullmatch(r"mino: m-1: 3 tokens in, 2 out, \d+\.\d s\n", ended.err), ended.err
    assert ended.out == "巴黎 🗼\n"
    assert mino.run("ask", "--no-usage", "q", env={"MINO_USAGE": "1"}).err == ""
    with_json = mino.run("ask", "--json", "q", env={"MINO_USAGE": "1"})
    assert "tokens in" in with_json.err and json.loads(with_json.out)["usage"]["input_tokens"] == 3


def test_model_and_usage_are_saved_and_shown(mino: Program, server: ScriptedServer) -> None:
    mino.run("ask", "q")
    answer = mino.records()[1]
    assert (answer["model"], answer["usage"]["output_tokens"]) == ("m-1", 2)
    shown = mino.run("history", "show")
    assert shown.out.partition("\n")[0].endswith("  m-1, 3 tokens in, 2 out")
    turn = mino.run("history", "show", "--json").json
    assert (turn["model"], turn["usage"], turn["input"]) == ("m-1", answer["usage"], None)
    assert mino.run("history", "verify").status == 0
