"""Services of config.toml: what one brings, what goes before it, and that its key goes to its own address alone."""

from collections.abc import Iterator

import pytest

from tests.server import ScriptedServer, completed, error, json_reply
from tests.system.program import Program

KEYS = {"A_KEY": "sk-aaaa", "B_KEY": "sk-bbbb", "OPENAI_API_KEY": "sk-open"}


@pytest.fixture
def servers() -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    with ScriptedServer(always=completed("A")) as a, ScriptedServer(always=completed("B")) as b:
        yield a, b


def configure(mino: Program, text: str) -> None:
    mino.home.mkdir(mode=0o700, exist_ok=True)
    (mino.home / "config.toml").write_text(text)


def two(a: ScriptedServer, b: ScriptedServer, top: str = "", *, commands: bool = False) -> str:
    """Two services, each with a key of its own, from a variable or from a command."""
    keys = ('api_key_command = "echo sk-aaaa"', 'api_key_command = ["echo", "sk-bbbb"]')
    if not commands:
        keys = ('api_key_env = "A_KEY"', 'api_key_env = "B_KEY"')
    return f"""{top}
[services.a]
base_url = "{a.url}"
model = "model-a"
{keys[0]}
[services."b 服务"]
base_url = "{b.url}"
model = "model-b"
{keys[1]}
[services.none]
base_url = "{b.url}"
"""


def sent(server: ScriptedServer) -> str:
    """The key of the last request."""
    return server.requests[-1].headers.get("authorization", "").removeprefix("Bearer ")


@pytest.mark.parametrize("commands", [False, True])
def test_the_key_of_one_service_never_goes_to_another_address(
    mino: Program, servers: tuple[ScriptedServer, ScriptedServer], commands: bool
) -> None:
    a, b = servers
    configure(mino, two(a, b, "service = 'b 服务'", commands=commands))
    for words, env, went_to, key in (
        ([], {}, b, "sk-bbbb"),
        (["--service", "a"], {}, a, "sk-aaaa"),
        (["--service", "none"], {}, b, ""),  # it names no key, and gets none
        (["--base-url", a.url], {}, a, "sk-open"),
        (["--service", "b 服务", "--base-url", a.url], {}, a, "sk-open"),
        ([], {"OPENAI_BASE_URL": a.url}, a, "sk-open"),
        ([], {"MINO_SERVICE": "a", "OPENAI_BASE_URL": b.url}, a, "sk-aaaa"),
    ):
        ended = mino.run("ask", "--no-history", *words, "q", env=KEYS | env)
        assert ended.status == 0, ended.err
        assert sent(went_to) == key, (words, env)
    assert {sent(a), sent(b)} <= {"", *KEYS.values()}
    assert not any("sk-bbbb" in asked.headers.get("authorization", "") for asked in a.requests)
    assert not any("sk-aaaa" in asked.headers.get("authorization", "") for asked in b.requests)


@pytest.mark.parametrize(
    ("words", "env", "model", "of"),
    [
        ([], {}, "model-a", "a"),
        ([], {"OPENAI_MODEL": "x"}, "x", "a"),
        ([], {"MINO_MODEL": "x"}, "x", "a"),
        (["-m", "x"], {"MINO_MODEL": "y"}, "x", "a"),
        (["--service", "b 服务"], {"OPENAI_MODEL": "x", "MINO_MODEL": "y"}, "model-b", "b"),
        ([], {"MINO_SERVICE": "b 服务", "MINO_MODEL": "y", "OPENAI_BASE_URL": "http://127.0.0.1:9"}, "model-b", "b"),
        (["-m", "x"], {"MINO_SERVICE": "b 服务"}, "x", "b"),
        (["--service", "b 服务"], {"MINO_SERVICE": "a"}, "model-b", "b"),
        (["--service", "none"], {"OPENAI_MODEL": "x"}, "gpt-5.5", "b"),
        (["--service", "none", "-m", "x"], {}, "x", "b"),
        (["--service", "a"], {"MINO_BASE_URL": "http://127.0.0.1:9"}, "model-a", "a"),
    ],
)
def test_a_service_stands_where_it_was_chosen(
    mino: Program,
    servers: tuple[ScriptedServer, ScriptedServer],
    words: list[str],
    env: dict[str, str],
    model: str,
    of: str,
) -> None:
    configure(mino, two(*servers, "service = 'a'\nlocal = false"))
    assert mino.run("ask", *words, "q", env=KEYS | env).status == 0
    asked = dict(zip("ab", servers, strict=True))[of]
    assert asked.requests[-1].json["model"] == model


def test_a_service_goes_before_the_engine_of_the_file(
    mino: Program, servers: tuple[ScriptedServer, ScriptedServer]
) -> None:
    configure(mino, two(*servers, "local = true"))
    assert mino.run("ask", "--service", "a", "q", env=KEYS).out == "A\n"
    both = mino.run("ask", "--service", "a", "--local", "q", env=KEYS)
    assert both.status == 2 and "exclude each other" in both.err


def test_an_alias_names_a_model_of_the_service_in_use(
    mino: Program, servers: tuple[ScriptedServer, ScriptedServer]
) -> None:
    a, b = servers
    more = "[services.a.models]\nfast = 'model-a-mini'\n'大' = 'model-a-max'\n"
    configure(mino, two(a, b).replace('[services."b', more + '[services."b'))
    for words, model in (
        (["--service", "a", "-m", "fast"], "model-a-mini"),
        (["--service", "a", "-m", "大"], "model-a-max"),
        (["--service", "a", "-m", "other"], "other"),
        (["--service", "b 服务", "-m", "fast"], "fast"),
    ):
        assert mino.run("ask", *words, "q", env=KEYS).status == 0
        assert (a if "a" in words else b).requests[-1].json["model"] == model


def test_what_a_service_lacks_is_told(mino: Program, servers: tuple[ScriptedServer, ScriptedServer]) -> None:
    configure(mino, two(*servers))
    ended = mino.run("ask", "--service", "b", "q", env=KEYS)
    assert ended.status == 66 and "there is no service 'b'" in ended.err and "'a', 'b 服务', 'none'" in ended.err
    near = mino.run("ask", "--service", "b服务", "q", env=KEYS)
    assert near.status == 66 and "hint: did you mean 'b 服务'?" in near.err
    unset = mino.run("ask", "--service", "a", "q", env={"OPENAI_API_KEY": "sk-open"})
    assert unset.status == 78 and "A_KEY is not set, and service 'a' names it" in unset.err
    (mino.home / "config.toml").unlink()
    nothing = mino.run("ask", "--service", "a", "q")
    assert nothing.status == 66 and "has no services" in nothing.err
    assert not any(server.requests for server in servers)


def test_a_refused_key_names_the_variable_of_the_service(mino: Program) -> None:
    with ScriptedServer(error(401, "bad key sk-aaaa")) as server:
        configure(mino, two(server, server))
        ended = mino.run("ask", "--service", "a", "q", env=KEYS)
    assert ended.status == 77 and "the key from A_KEY" in ended.err and "sk-aaaa" not in ended.err
    assert "hint: export A_KEY=…" in ended.err


def test_a_query_of_the_base_url_is_on_every_request_and_in_no_message(mino: Program) -> None:
    moved = json_reply({}, 307, {"location": "/other/responses?api-version=2&k=s3cret"})
    with ScriptedServer(completed("1"), moved, completed("2"), always=error(404, "no")) as server:
        env = {"OPENAI_BASE_URL": f"{server.origin}/openai/v1/?api-version=2&k=s3cret", "OPENAI_API_KEY": "k"}
        assert mino.run("ask", "q", env=env).out == "1\n"
        assert server.requests[0].path == "/openai/v1/responses?api-version=2&k=s3cret"
        assert mino.run("ask", "q", env=env).out == "2\n"
        assert server.requests[2].path == "/other/responses?api-version=2&k=s3cret"
        failed = mino.run("ask", "q", env=env)
        assert failed.status == 69 and "/openai/v1/responses' answered 404" in failed.err
        listed = mino.run("config", "models", env=env)
        assert server.requests[-1].path == "/openai/v1/models?api-version=2&k=s3cret"
        shown = mino.run("config", "show", env=env)
        banner = mino.run("chat", env=env)
    for ended in (failed, listed, shown, banner):
        assert "s3cret" not in ended.out + ended.err, ended
