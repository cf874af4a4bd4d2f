"""flag > MINO_ variable > OPENAI_ variable > config.toml > default; what a choice of a server ends; paths."""

from pathlib import Path
from typing import Any

import pytest

from mino.config import Config, read_config
from mino.errors import Misconfigured, UsageMistake
from mino.home import Home
from mino.settings import Settings, settle
from mino.values import FILE_ONLY, OPTIONS, Limit


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path), False)


def configure(home: Home, text: str | bytes) -> Home:
    Path(home.config).write_bytes(text if isinstance(text, bytes) else text.encode())
    return home


def settled(home: Home | None, environ: dict[str, str] | None = None, **flags: object) -> Settings:
    """The settings, whatever their sources are."""
    return settle(flags, environ or {}, home)._replace(sources={})


def field(name: str) -> str:
    return name.replace("-", "_")


SAMPLES: dict[str, list[tuple[str, Any]]] = {
    "model": [("a", "a"), ("b", "b"), ("模型", "模型"), ("d", "d")],
    "base-url": [(f"http://{host}/v1", f"http://{host}/v1") for host in "abcd"],
    "local": [("1", True), ("no", False), ("TRUE", True), ("false", False)],
    "context": [("3", Limit(3)), ("none", Limit(0)), ("64kB", Limit(size=64000)), ("0", Limit(0))],
    "instructions": [("a b.md", "a b.md"), ("/b", "/b"), ("灵魂.md", "灵魂.md"), ("d", "d")],
    "wait": [("1", 1.0), ("2.5", 2.5), ("0", 0.0), ("4", 4.0)],
    "timeout": [("1", 1.0), ("0.5", 0.5), ("3", 3.0), ("4", 4.0)],
    "service": [("阿里", "阿里"), ("b", "b"), ("c", "c"), ("d", "d")],
    "system": [("", ""), ("Be brief.\n要简短。", "Be brief.\n要简短。"), ("c", "c"), ("d", "d")],
    "stream": [("0", False), ("yes", True), ("1", True), ("no", False)],
    "usage": [("1", True), ("no", False), ("0", False), ("yes", True)],
    "retries": [("0", 0), ("1", 1), ("5", 5), ("4", 4)],
}


def test_every_option_has_samples() -> None:
    assert set(SAMPLES) == set(OPTIONS)


def test_the_defaults() -> None:
    assert settle({}, {}, None) == Settings()
    assert Settings(base_url=None, wait=0, timeout=300, retries=2, replay="items", warn_turns=20) == Settings()
    assert Settings(stream=True, usage=False, api_key_env="OPENAI_API_KEY", local_context=8192) == Settings()


@pytest.mark.parametrize("name", OPTIONS)
def test_the_strongest_place_wins(name: str, home: Home) -> None:
    (flag, by_flag), (mine, by_mine), (other, by_other), (file, by_file) = SAMPLES[name]
    services = "" if name != "service" else "".join(f"[services.'{each}']\n" for each, _ in SAMPLES[name])
    configure(home, f"{name} = '{file}'\n{services}")
    environ: dict[str, str] = {}
    if name == "instructions":
        by_file = str(Path(home.path, by_file))
    assert getattr(settle({}, environ, home), field(name)) == by_file
    if OPTIONS[name].other_variable:
        environ[OPTIONS[name].other_variable] = other
        assert getattr(settle({}, environ, home), field(name)) == by_other
    environ["MINO_" + field(name).upper()] = mine
    assert getattr(settle({}, environ, home), field(name)) == by_mine
    assert getattr(settle({field(name): flag}, environ, home), field(name)) == by_flag
    assert getattr(settle({field(name): None}, environ, home), field(name)) == by_mine


@pytest.mark.parametrize("name", OPTIONS)
def test_an_empty_variable_is_an_unset_one(name: str) -> None:
    environ = dict.fromkeys(OPTIONS[name].variables(name), "")
    assert settle({}, environ, None) == Settings()


def test_only_what_the_openai_tools_share_has_a_variable_of_theirs() -> None:
    others = {name: option.other_variable for name, option in OPTIONS.items() if option.other_variable}
    assert others == {"model": "OPENAI_MODEL", "base-url": "OPENAI_BASE_URL"}


def test_the_file_takes_toml_values_and_both_spellings(home: Home) -> None:
    configure(
        home,
        'base_url = "http://x"\nlocal = true\nretries = 1\nwait = 1.5\ntimeout = 2\ncontext = 7\n'
        'replay = "text"\nwarn_turns = 5\napi_key_command = ["pass", "show", "钥匙"]\n',
    )
    expected = Settings(
        base_url="http://x",
        local=True,
        context=Limit(7),
        wait=1.5,
        timeout=2,
        retries=1,
        replay="text",
        warn_turns=5,
        api_key_command=["pass", "show", "钥匙"],
    )
    assert settled(home) == expected
    configure(home, 'base-url = "http://x"\nwarn-turns = 5\nlocal = 0\ncontext = "all"\napi-key-command = "pass"')
    assert settled(home) == Settings(base_url="http://x", local=False, warn_turns=5, api_key_command="pass")


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        ("all", Limit()),
        ("0B", Limit(size=0)),
        ("500B", Limit(size=500)),
        ("64kB", Limit(size=64_000)),
        ("2MB", Limit(size=2_000_000)),
        ("1GB", Limit(size=1_000_000_000)),
        ("64KB", None),
        ("64k", None),
        ("64kb", None),
        ("2mb", None),
        ("2MiB", None),
        ("64 kB", None),
        ("1.5MB", None),
        ("-1kB", None),
        ("+1kB", None),
        ("kB", None),
        ("64kB\n", None),
        ("٣kB", None),
        ("9" * 5000 + "B", None),
        ("ALL", None),
    ],
)
def test_how_much_context(value: str, limit: Limit | None) -> None:
    if limit is not None:
        assert settle({"context": value}, {}, None).context == limit
        return
    with pytest.raises(UsageMistake, match="for --context: expected all, none, a number of turns, or a size such as "):
        settle({"context": value}, {}, None)


URL = "http://x"
CHOICES: list[tuple[dict[str, object], dict[str, str], str, bool]] = [
    ({}, {}, "local = true", True),
    ({"base_url": URL}, {}, "local = true", False),
    ({}, {"MINO_BASE_URL": URL}, "local = true", False),
    ({}, {"OPENAI_BASE_URL": URL}, "local = true", False),
    ({"local": True}, {"MINO_BASE_URL": URL, "OPENAI_BASE_URL": URL}, f"base_url = '{URL}'", True),
    ({}, {"MINO_LOCAL": "1", "OPENAI_BASE_URL": URL}, f"base_url = '{URL}'", True),
    ({"base_url": URL}, {"MINO_LOCAL": "1"}, "", False),
    ({"base_url": URL}, {"MINO_LOCAL": "1"}, "local = true", False),
    # Named in one place, both: the engine, as that place says.
    ({}, {"MINO_LOCAL": "1", "MINO_BASE_URL": URL}, "", True),
    ({}, {}, f"local = true\nbase_url = '{URL}'", True),
    ({}, {"MINO_LOCAL": "0"}, "local = true", False),
]


@pytest.mark.parametrize(("flags", "environ", "config", "local"), CHOICES)
def test_a_stronger_choice_of_a_server_ends_a_weaker_one(
    home: Home, flags: dict[str, object], environ: dict[str, str], config: str, local: bool
) -> None:
    configure(home, config)
    assert settle(flags, environ, home).local is local


def test_two_servers_on_one_command_line_are_a_mistake() -> None:
    with pytest.raises(UsageMistake, match="exclude each other"):
        settle({"local": True, "base_url": URL}, {}, None)


def test_with_the_engine_the_model_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "模型.gguf"
    file.touch()
    named = {"MINO_LOCAL_MODEL": "/other.gguf"}
    of_servers = {"OPENAI_MODEL": "a", "MINO_MODEL": "b"}
    assert settle({"local": True, "model": str(file)}, named | of_servers, None).model == str(file)
    assert settle({"local": True}, named | of_servers, None).model == "/other.gguf"
    assert settle({"local": True}, of_servers, None).model is None
    assert settle({"model": "b", "base_url": URL}, {"MINO_LOCAL": "1"} | named, None).model == "b"
    for name in ("gpt-5.5", str(tmp_path), f"{file}x", "~/no such.gguf"):
        with pytest.raises(UsageMistake, match="is no file") as caught:
            settle({"local": True, "model": name}, {}, None)
        assert name in caught.value.message and "FILE.gguf" in caught.value.hint


BAD: list[tuple[str, str]] = [
    *(("context", value) for value in ("some", "-1", "1.5", "nan", "")),
    *(("wait", value) for value in ("x", "-1", "nan", "inf", "1e999")),
    *(("timeout", value) for value in ("0", "-1", "nan", "soon")),
    *(("retries", value) for value in ("-1", "1.5", "x", "inf")),
    *(("local", value) for value in ("2", "maybe")),
    *(("model", value) for value in ("a\nb", "a\0b", "\udcff", "")),
    ("base-url", "http://x\r"),
    ("instructions", ""),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_refused_where_it_was_given(name: str, value: str) -> None:
    with pytest.raises(UsageMistake, match=f"for --{name}: expected") as caught:
        settle({field(name): value}, {}, None)
    assert caught.value.status == 2 and "\n" not in caught.value.message
    if value:
        with pytest.raises(Misconfigured, match=f"for MINO_{field(name).upper()}: expected"):
            settle({}, {"MINO_" + field(name).upper(): value}, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = 5", "line 1: bad value '5' for model: expected"),
        ("model = ''", "line 1: bad value '' for model: expected"),
        ('instructions = "a\\u0000b"', "expected the path of a file"),
        ("local = 'maybe'", "expected 1 or 0"),
        ("local = 2", "expected 1 or 0"),
        ("wait = true", "expected a number of seconds"),
        ("wait = 0x" + "f" * 4500, "expected a number of seconds"),
        ("wait = " + "9" * 400, "expected a number of seconds"),
        ("wait = " + "9" * 5000, "is not TOML"),
        ("timeout = 0", "above 0"),
        ("retries = [1]", "expected a whole number"),
        ("context = -1", "expected all, none, a number"),
        ("replay = 'all'", '"items" or "text"'),
        ("warn_turns = 'x'", "expected a whole number"),
        ("api_key_command = []", "expected a command"),
        ("api_key_command = ['a', 1]", "expected a command"),
        ("api_key_command = ' '", "expected a command"),
        ("modle = 'x'", "line 1: unknown setting 'modle'"),
        ("dry_run = true", "'dry_run'"),
        ("[mino]\nmodel = 'x'", "'mino'"),
        ("\nmodel\n", "line 2 is not TOML: Expected '=' after a key in a key/value pair (column 6)"),
        ("a = " + "[" * 5000, "is not TOML"),
        (b"model = '\xff'", "is not UTF-8 at byte 9"),
        (b"\xef\xbb\xbfmodel = '\xff'", "is not UTF-8 at byte 12"),
        (b"model = 'x'\n\xef\xbb\xbf", "is not TOML"),
    ],
)
def test_a_bad_file_is_refused_with_its_name(home: Home, text: str | bytes, words: str) -> None:
    configure(home, text)
    with pytest.raises(Misconfigured) as caught:
        settle({}, {}, home)
    assert words in caught.value.message and home.config in caught.value.message
    assert caught.value.status == 78 and len(caught.value.message) < 500


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(Misconfigured, match="MINO_BASE_URL") as caught:
        settle({}, {"MINO_BASE_URL": "https://me:secret@example.com/v1\r"}, None)
    assert "secret" not in caught.value.message


def test_a_file_that_is_not_there_sets_nothing(home: Home) -> None:
    assert read_config(home.config) == Config(home.config)
    Path(home.config).mkdir()
    with pytest.raises(Misconfigured, match="is neither a regular file nor a pipe"):
        read_config(home.config)


def test_the_names_in_the_file_are_those_of_the_options(home: Home) -> None:
    assert {field(name) for name in OPTIONS | FILE_ONLY} == set(Settings._fields) - {"api_key_env", "sources"}
