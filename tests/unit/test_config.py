"""config.toml: services and settings, and the line of what is wrong."""

from pathlib import Path

import pytest

from mino.config import Config, find_line, nearest, read_config
from mino.errors import Misconfigured

TEXT = """\
# 设置
model = "m"

"retries" = 1
local-context = 4096
options = { temperature = 0.2, top_p = 1 }

[services."阿里 云"]
base_url = "https://example.com/v1"
models = { fast = "qwen-turbo" }
[services.ollama]
model = "llama3.2"
[services.ollama.options]
temperature = 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_settings_and_services_are_read(file: Path) -> None:
    file.write_text(TEXT)
    config = read_config(str(file))
    assert config.settings == {
        "model": "m",
        "retries": 1,
        "local_context": 4096,
        "options": {"temperature": 0.2, "top_p": 1},
    }
    assert config.services == {
        "阿里 云": {"base_url": "https://example.com/v1", "models": {"fast": "qwen-turbo"}},
        "ollama": {"model": "llama3.2", "options": {"temperature": 1}},
    }
    file.unlink()
    assert read_config(str(file)) == Config(str(file))


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("model",), 2),
        (("retries",), 4),
        (("options",), 6),
        (("options", "top_p"), 6),  # where the value begins that it stands in
        (("services", "阿里 云"), 8),
        (("services", "阿里 云", "models"), 10),
        (("services", "ollama", "options", "temperature"), 14),
        (("nothing",), None),
    ],
)
def test_the_line_of_a_value(keys: tuple[str, ...], line: int | None) -> None:
    assert find_line(TEXT, keys) == line


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("model = 'a'\nmodle = 'x'", "line 2: unknown setting 'modle'", "did you mean 'model'?"),
        ("\n\n[service.x]\nmodel = 'x'", "line 3: bad value", "man mino"),
        ("[servces.x]\n", "line 1: unknown setting 'servces'", "did you mean 'services'?"),
        (
            "[services.x]\nbase-ulr = 'x'",
            "line 2: unknown setting 'base-ulr' in [services.x]",
            "did you mean 'base_url'?",
        ),
        ("services = 5", "line 1: bad value '5' for services: expected tables [services.NAME]", "man mino"),
        ("services.x = 5", "line 1: bad value '5' for services.x: expected a table", "man mino"),
        ("[services.x]\ntimeout = 5", "line 2: unknown setting 'timeout' in [services.x]", ""),
        ("[services.x]\nmodels = { a = 5 }", "line 2: bad value", ""),
        ("[services.x]\nmodels = ['a']", "expected a table of names of models", ""),
        ("[services.x]\napi_key_env = 'A'\n\napi_key_command = 'b'", "line 4: [services.x] has api_key_env and", ""),
        ("options = 5", "line 1: bad value '5' for options: expected a table", ""),
        ("options = { a = 1979-05-27 }", "line 1: bad value", ""),
        ("[services.x]\noptions = { a = [nan] }", "line 2: bad value", ""),
        ("options = { a = inf }", "expected values that JSON has", ""),
        ("local_context = 0", "expected a whole number of tokens, 1 or more", ""),
        ("warn-turns = 1\nwarn_turns = 2", "line 2: the setting 'warn_turns' is there twice", ""),
        ("system = '''\na\n'''\ntimeout = '''\nx\n'''", "line 4: bad value", ""),
        ("x\x1b = 1", "is not TOML", "man mino"),
        ("'x\\u001b[31m' = 1", "unknown setting", ""),
        ("a = 1\na = 2\n", "line 2 is not TOML: Cannot overwrite a value", "man mino"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_nearest_name(file: Path, text: str, said: str, hint: str) -> None:
    file.write_text(text)
    with pytest.raises(Misconfigured) as caught:
        read_config(str(file))
    assert said in caught.value.message and f"'{file}'" in caught.value.message, caught.value.message
    assert caught.value.hint == hint or not hint
    assert "\x1b" not in caught.value.message


def test_a_secret_in_a_url_is_not_repeated(file: Path) -> None:
    file.write_text("base_url = ['https://me:s3cr3t@example.com']")
    with pytest.raises(Misconfigured) as caught:
        read_config(str(file))
    assert "s3cr3t" not in caught.value.message


def test_only_a_name_that_is_near_is_offered() -> None:
    assert nearest("modle", ["model", "timeout"]) == "did you mean 'model'?"
    assert nearest("xyz", ["model", "timeout"]) == nearest("x", []) == ""
