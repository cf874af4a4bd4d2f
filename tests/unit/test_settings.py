"""flag > MINO_ variable > OPENAI_ variable > config.toml > default; and the key."""

from pathlib import Path
from typing import Any

import pytest

from mino import settings as module
from mino.errors import Misconfigured, UsageMistake
from mino.home import Home
from mino.settings import FILE_ONLY, OPTIONS, Settings, find_key, read_config, settle


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path), False)


def configure(home: Home, text: str | bytes) -> Home:
    Path(home.config).write_bytes(text if isinstance(text, bytes) else text.encode())
    return home


def field(name: str) -> str:
    return name.replace("-", "_")


SAMPLES: dict[str, list[tuple[str, Any]]] = {
    "model": [("a", "a"), ("b", "b"), ("模型", "模型"), ("d", "d")],
    "base-url": [(f"http://{host}/v1", f"http://{host}/v1") for host in "abcd"],
    "local": [("1", True), ("no", False), ("TRUE", True), ("false", False)],
    "context": [("3", 3), ("none", 0), ("all", None), ("0", 0)],
    "instructions": [("a b.md", "a b.md"), ("/b", "/b"), ("灵魂.md", "灵魂.md"), ("d", "d")],
    "wait": [("1", 1.0), ("2.5", 2.5), ("0", 0.0), ("4", 4.0)],
    "timeout": [("1", 1.0), ("0.5", 0.5), ("3", 3.0), ("4", 4.0)],
    "retries": [("0", 0), ("1", 1), ("5", 5), ("4", 4)],
}


def test_every_option_has_samples() -> None:
    assert set(SAMPLES) == set(OPTIONS)


def test_the_defaults() -> None:
    assert settle({}, {}, None) == Settings()
    assert Settings() == Settings(None, None, False, None, None, 0, 300, 2, "items", 20, None)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_strongest_place_wins(name: str, home: Home) -> None:
    (flag, by_flag), (mine, by_mine), (other, by_other), (file, by_file) = SAMPLES[name]
    configure(home, f"{name} = '{file}'\n")
    environ: dict[str, str] = {}
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
    expected = Settings(None, "http://x", True, 7, None, 1.5, 2, 1, "text", 5, ["pass", "show", "钥匙"])
    assert settle({}, {}, home) == expected
    configure(home, 'base-url = "http://x"\nwarn-turns = 5\nlocal = 0\ncontext = "all"\napi-key-command = "pass"')
    assert settle({}, {}, home) == Settings(base_url="http://x", warn_turns=5, api_key_command="pass")


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
        ("model = 5", "bad value '5' for model in"),
        ("model = ''", "bad value '' for model in"),
        ('instructions = "a\\u0000b"', "expected the path of a file"),
        ("local = 'maybe'", "expected 1 or 0"),
        ("local = 2", "expected 1 or 0"),
        ("wait = true", "expected a number of seconds"),
        ("wait = 0x" + "f" * 4500, "expected a number of seconds"),
        ("wait = " + "9" * 400, "expected a number of seconds"),
        ("wait = " + "9" * 5000, "is not TOML"),
        ("timeout = 0", "above 0"),
        ("retries = [1]", "expected a whole number"),
        ("context = -1", "expected all, none, or a number"),
        ("replay = 'all'", '"items" or "text"'),
        ("warn_turns = 'x'", "expected a whole number"),
        ("api_key_command = []", "expected a command"),
        ("api_key_command = ['a', 1]", "expected a command"),
        ("api_key_command = ' '", "expected a command"),
        ("modle = 'x'", "the unknown setting 'modle'"),
        ("dry_run = true", "'dry_run'"),
        ("[mino]\nmodel = 'x'", "'mino'"),
        ("model", "is not TOML"),
        ("a = " + "[" * 5000, "is not TOML"),
        (b"model = '\xff'", "is not UTF-8 at byte 9"),
        (b"\xef\xbb\xbfmodel = 'x'", "is not TOML"),
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
    assert read_config(home.config) == {}
    Path(home.config).mkdir()
    with pytest.raises(Misconfigured, match="is neither a regular file nor a pipe"):
        read_config(home.config)


def test_the_names_in_the_file_are_those_of_the_options(home: Home) -> None:
    assert {field(name) for name in OPTIONS | FILE_ONLY} == set(Settings._fields)


def test_the_key_comes_from_the_variable_without_its_white_space() -> None:
    settings = Settings(api_key_command="echo other")
    assert find_key(settings, {"OPENAI_API_KEY": " sk-1\r\n"}) == ("sk-1", "OPENAI_API_KEY")


def test_without_a_key_only_a_named_server_is_asked() -> None:
    with pytest.raises(Misconfigured, match="no key") as caught:
        find_key(Settings(), {"OPENAI_API_KEY": " "})
    assert all(way in caught.value.hint for way in ("OPENAI_API_KEY", "--base-url", "--local"))
    assert find_key(Settings(base_url="http://localhost/v1"), {}) == (None, "OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("printf ' sk-%s\\n' 2", "sk-2"),
        (["printf", " sk-%s\n", "a b"], "sk-a b"),
        ("cat; echo sk-3", "sk-3"),  # there is no standard input to wait for
    ],
)
def test_the_key_comes_from_a_command(command: str | list[str], key: str) -> None:
    assert find_key(Settings(api_key_command=command), {}) == (key, "api_key_command")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo sk-secret; exit 3", "failed with exit status 3"),
        ("kill -9 $$", "failed with exit status -9"),
        ("true", "printed no key"),
        (["/missing/command"], "cannot run api_key_command"),
        (["a\0b"], "cannot run api_key_command"),
    ],
)
def test_a_command_that_gives_no_key_is_told(command: str | list[str], words: str) -> None:
    with pytest.raises(Misconfigured, match=words) as caught:
        find_key(Settings(api_key_command=command), {})
    assert "secret" not in caught.value.message


def test_a_command_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEY_COMMAND_SECONDS", 0.1)
    with pytest.raises(Misconfigured, match="did not finish within"):
        find_key(Settings(api_key_command=["sleep", "60"]), {})
