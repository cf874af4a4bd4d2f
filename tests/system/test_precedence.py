"""flag > `MINO_…` > `OPENAI_…` > config.toml > default, option by option; and where the key comes from (section 9)."""

import fcntl
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.server import Recorded, Reply, ScriptedServer, completed, error, events
from tests.system.program import Program, finish, read_until, sent_texts, two_turns


def configure(mino: Program, *lines: str) -> None:
    """Write config.toml."""
    mino.home.mkdir(mode=0o700, exist_ok=True)
    (mino.home / "config.toml").write_text("\n".join(lines))


def peel(layers: Sequence[Mapping[str, str]], words: Sequence[str], look: Callable[..., object]) -> list[object]:
    """What `look` sees with all layers of the environment, without the first of them, without the first two …"""
    seen = []
    while True:
        env = {name: value for layer in layers for name, value in layer.items()}
        seen.append(look(*words, env=env))
        if not layers:
            return seen
        words, layers = [], layers[1:]


def test_model(mino: Program) -> None:
    configure(mino, 'model = "of the file"')
    layers = [{}, {"MINO_MODEL": "of mino"}, {"OPENAI_MODEL": "of openai"}]
    seen = peel(layers, ["-m", "of the flag"], lambda *words, env: dry(mino, *words, env=env)["model"])
    assert seen == ["of the flag", "of mino", "of openai", "of the file"]
    configure(mino)
    from mino.settings import DEFAULT_MODEL

    assert dry(mino)["model"] == DEFAULT_MODEL


def dry(mino: Program, *words: str, env: Mapping[str, str] | None = None) -> Mapping[str, object]:
    """The request that a dry run shows."""
    ended = mino.run("ask", "--dry-run", *words, "q", env=env)
    assert ended.status == 0 and re.fullmatch("mino: the context has .*\n", ended.err)
    body: Mapping[str, object] = ended.json
    return body


def test_base_url(mino: Program) -> None:
    with (
        ScriptedServer(always=completed("flag")) as flag,
        ScriptedServer(always=completed("mino")) as own,
        ScriptedServer(always=completed("openai")) as other,
        ScriptedServer(always=completed("file")) as file,
    ):
        configure(mino, f'base_url = "{file.url}/"')  # one trailing slash is dropped
        layers = [{}, {"MINO_BASE_URL": own.url}, {"OPENAI_BASE_URL": other.url}]
        seen = peel(layers, ["--base-url", flag.url], lambda *words, env: mino.run("ask", *words, "q", env=env).out)
        assert seen == ["flag\n", "mino\n", "openai\n", "file\n"]
        assert file.requests[0].path == "/v1/responses"


def test_context(mino: Program) -> None:
    mino.write_session(two_turns())
    configure(mino, "context = 1")
    seen = peel(
        [{}, {"MINO_CONTEXT": "all"}],
        ["--context", "300B"],
        lambda *words, env: sent_texts(dry(mino, *words, env=env)),
    )
    assert seen == [["two", "A2", "q"], ["one", "A1", "two", "A2", "q"], ["two", "A2", "q"]]
    configure(mino, 'context = "300B"')
    assert sent_texts(dry(mino)) == ["two", "A2", "q"]
    for value, status in (("300", 0), ('"300b"', 78), ("1.5", 78), ("true", 78), ('["1kB"]', 78)):
        configure(mino, f"context = {value}")
        for words in (["ask", "--dry-run", "q"], ["history", "show", "--context"]):
            assert mino.run(*words).status == status, value


def test_instructions(mino: Program, tmp_path: Path) -> None:
    for name in ("flag", "variable", "file"):
        (tmp_path / name).write_text(f"of the {name} 说明")
    configure(mino, f'instructions = "{tmp_path / "file"}"')
    (mino.home / "SOUL.md").write_text("soul")
    layers = [{}, {"MINO_INSTRUCTIONS": str(tmp_path / "variable")}]
    words = ["--instructions", str(tmp_path / "flag")]
    seen = peel(layers, words, lambda *words, env: dry(mino, *words, env=env)["instructions"])
    assert seen == ["of the flag 说明", "of the variable 说明", "of the file 说明"]
    configure(mino)
    assert dry(mino)["instructions"] == "soul"


def test_retries(mino: Program) -> None:
    configure(mino, "retries = 1")
    with ScriptedServer(always=error(503, "busy", headers={"retry-after-ms": "1"})) as server:
        seen = peel(
            [{}, {"MINO_RETRIES": "3"}],
            ["--retries", "0"],
            lambda *words, env: mino.run("ask", *words, "q", server=server, env=env).status,
        )
        assert seen == [69, 69, 69] and len(server.requests) == 1 + 4 + 2
        configure(mino)
        assert mino.run("ask", "q", server=server).status == 69 and len(server.requests) == 7 + 3


def test_timeout(mino: Program) -> None:
    configure(mino, "timeout = 0.1")
    with ScriptedServer(always=events(20.0)) as server:
        for words, env, seconds in (
            (["--timeout", "0.3"], {}, "0.3"),
            ([], {"MINO_TIMEOUT": "0.2"}, "0.2"),
            ([], {}, "0.1"),
        ):
            ended = mino.run("ask", *words, "q", server=server, env=env)
            assert ended.status == 69 and f"for {seconds} s" in ended.err


def test_wait(mino: Program, server: ScriptedServer) -> None:
    configure(mino, "wait = 600")
    with (mino.home / "sessions.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stopped = [
            mino.run("ask", "--wait", "0", "q", env={"MINO_WAIT": "600"}),
            mino.run("ask", "q", env={"MINO_WAIT": "0.1"}),
        ]
        waiting = mino.start("ask", "q")
        assert b"up to 600 seconds" in read_until(waiting.stderr, b"\n")
    assert [ended.status for ended in stopped] == [75, 75] and finish(waiting).status == 0


def test_local_and_a_base_url_the_stronger_wins(mino: Program) -> None:
    with ScriptedServer(always=completed("of the server")) as server:
        configure(mino, "local = true")
        engine, url = {"MINO_LOCAL_MODEL": "/nowhere/model.gguf"}, {"OPENAI_BASE_URL": server.url}
        for words, env in (
            (["--local"], {"MINO_LOCAL": "0", "MINO_BASE_URL": server.url} | url),
            ([], {"MINO_LOCAL": "yes"} | url),
            ([], {}),
        ):
            ended = mino.run("ask", *words, "q", env=engine | env)
            assert ended.status in (66, 78) and server.url not in ended.err and not server.requests
        for words, env in (
            (["--base-url", server.url, "-m", "m"], {"MINO_LOCAL": "1"}),
            (["--base-url", server.url, "-m", "m"], {}),
            (["-m", "m"], url),
            (["-m", "m"], url | {"MINO_LOCAL": "false"}),
        ):
            ended = mino.run("ask", *words, "q", env=engine | env)
            assert (ended.status, ended.out) == (0, "of the server\n")
            assert server.requests[-1].json["model"] == "m"


@pytest.mark.parametrize("chosen", ["--local", "MINO_LOCAL", "local = true"])
def test_with_the_engine_a_model_that_is_no_file_is_a_mistake(mino: Program, chosen: str) -> None:
    configure(mino, chosen if "=" in chosen else "")
    words = [chosen] if chosen.startswith("-") else []
    ended = mino.run("ask", *words, "-m", "gpt-5.5", "q", env={"MINO_LOCAL": "1"} if chosen == "MINO_LOCAL" else {})
    assert ended.status == 2 and ended.err.startswith("mino: -m 'gpt-5.5' is no file, and the embedded engine ")
    assert mino.run("ask", *words, "--local", "--base-url", "http://x", "q").status == 2


def test_an_empty_variable_is_an_unset_one(mino: Program, server: ScriptedServer) -> None:
    options = ("MODEL", "BASE_URL", "LOCAL", "CONTEXT", "INSTRUCTIONS", "WAIT", "TIMEOUT", "RETRIES")
    empty = dict.fromkeys([*(f"MINO_{option}" for option in options), "OPENAI_MODEL", "OPENAI_API_KEY"], "")
    ended = mino.run("ask", "q", env=empty)
    assert (ended.status, ended.err) == (0, "")
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("name", ["DRY_RUN", "JSON", "NO_HISTORY"])
def test_what_changes_the_nature_of_a_call_has_no_variable(mino: Program, server: ScriptedServer, name: str) -> None:
    assert mino.run("ask", "q", env={f"MINO_{name}": "1"}).out == "巴黎 🗼\n"
    assert len(server.requests) == 1 and len(mino.records()) == 3


@pytest.mark.parametrize(
    ("words", "env", "config", "status", "said"),
    [
        (["--context", "some"], {}, "", 2, "--context"),
        (["--retries", "1.5"], {}, "", 2, "--retries"),
        (["--timeout", "0"], {}, "", 2, "--timeout"),
        (["--wait", "-1"], {}, "", 2, "--wait"),
        (["--nonsense"], {}, "", 2, "--nonsense"),
        ([], {"MINO_LOCAL": "maybe"}, "", 78, "MINO_LOCAL"),
        ([], {"MINO_WAIT": "nan"}, "", 78, "MINO_WAIT"),
        ([], {}, "retries = true", 78, "retries"),
        ([], {}, 'modell = "misspelt"', 78, "'modell'"),
        ([], {}, "model = ", 78, "is not TOML"),
        (["--instructions", "/no such file"], {}, "", 66, "'/no such file' does not exist"),
    ],
)
def test_a_bad_value_is_refused_where_it_was_given(
    mino: Program, server: ScriptedServer, words: list[str], env: dict[str, str], config: str, status: int, said: str
) -> None:
    configure(mino, config)
    ended = mino.run("ask", *words, "q", env=env)
    assert (ended.status, ended.out) == (status, "") and said in ended.err
    assert not server.connections and not mino.files()


def test_the_key_comes_from_the_variable_or_the_command(mino: Program, server: ScriptedServer) -> None:
    configure(mino, 'api_key_command = ["printf", " from-a-list\\n"]')
    mino.run("ask", "q", env={"OPENAI_API_KEY": " from-the-variable\n"})
    mino.run("ask", "q")
    configure(mino, "api_key_command = 'echo from-$((1 + 1))-shell'")
    mino.run("ask", "q")
    sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == ["Bearer from-the-variable", "Bearer from-a-list", "Bearer from-2-shell"]


@pytest.mark.parametrize("command", ['"exit 3"', '"true"', '"cat"', '["/no/such/command"]', '["\\u0000"]'])
def test_a_key_command_that_gives_no_key_is_a_bad_configuration(
    mino: Program, server: ScriptedServer, command: str
) -> None:
    configure(mino, f"api_key_command = {command}")
    ended = mino.run("ask", "q")
    assert ended.status == 78 and "api_key_command" in ended.err and not server.connections


def test_a_key_command_may_leave_children_behind(mino: Program, server: ScriptedServer) -> None:
    configure(mino, "api_key_command = 'echo sk-1; echo user: ann; sleep 600 2> log & echo $! > child'")
    ended = mino.run("ask", "q")
    os.kill(int((mino.home.parent / "child").read_text()), signal.SIGKILL)
    assert (ended.status, ended.out) == (0, "巴黎 🗼\n")
    assert server.requests[0].headers["authorization"] == "Bearer sk-1"


def test_without_a_key_and_a_server_the_ways_out_are_told(mino: Program) -> None:
    ended = mino.run("ask", "q")
    assert ended.status == 78
    assert all(way in ended.err for way in ("OPENAI_API_KEY", "--base-url", "--local"))
    assert not mino.home.exists()


KEY = "sk-secret-秘密"[:9] + "0123456789abcdef"


def repeat_the_key(request: Recorded) -> Reply:
    """A server that says back what it got, as some do."""
    return error(401, f"Incorrect API key provided: {request.headers['authorization']}")


def test_the_key_is_never_shown(mino: Program) -> None:
    with ScriptedServer(always=repeat_the_key) as server:
        ended = mino.run("ask", "q", server=server, env={"OPENAI_API_KEY": KEY})
    assert ended.status == 77 and "OPENAI_API_KEY" in ended.err
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    written = b"".join(path.read_bytes() for path in mino.home.rglob("*") if path.is_file())
    assert KEY.encode() not in ended.raw_out + ended.raw_err + written


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://user:hunter2@127.0.0.1:1/v1", "password"),
        ("ftp://127.0.0.1/v1", "http"),
        ("127.0.0.1:8080", "http"),
        ("http://127.0.0.1:99999/v1", "not a URL"),
        ("http://127.0.0.1/v1?key=hunter2#x", "fragment"),
    ],
)
def test_a_bad_base_url_is_refused(mino: Program, url: str, said: str) -> None:
    ended = mino.run("ask", "--base-url", url, "q")
    assert ended.status == 78 and said in ended.err and "hunter2" not in ended.err
    assert not mino.files() or not mino.session.read_bytes()
