"""The key: from the variable, or from a command, whose own end and first line count."""

import os
import signal
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from mino import key as module
from mino.errors import Misconfigured
from mino.home import Home
from mino.key import find_key
from mino.settings import Settings, settle


@pytest.fixture(autouse=True)
def no_child_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The current directory of the commands; the process whose id they write to `child` there is ended at the end."""
    monkeypatch.chdir(tmp_path)
    yield
    if (tmp_path / "child").exists():
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def test_the_key_comes_from_the_variable_without_its_white_space() -> None:
    environ = {"OPENAI_API_KEY": " sk-1\r\n"}
    assert find_key(Settings(api_key_command="echo other"), environ) == ("sk-1", "OPENAI_API_KEY")


def test_without_a_key_only_a_named_server_is_asked() -> None:
    with pytest.raises(Misconfigured, match="no key") as caught:
        find_key(Settings(), {"OPENAI_API_KEY": " "})
    assert all(way in caught.value.hint for way in ("OPENAI_API_KEY", "--base-url", "--local"))
    assert find_key(Settings(base_url="http://x"), {}) == (None, "OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("printf ' sk-%s\\n' 2", "sk-2"),
        (["printf", " sk-%s\n", "a b"], "sk-a b"),
        ("cat; echo sk-3", "sk-3"),  # there is no standard input to wait for
        ("echo sk-4; sleep 600 & echo $! > child", "sk-4"),  # an agent that stays
        ("yes sk-5 & sleep 0.1", "sk-5"),  # one that goes on talking
        ("echo sk-6; exec >&-; sleep 0.1", "sk-6"),
        ("printf 'sk-7\\nuser: ann\\nurl: x\\n'", "sk-7"),
        ("printf '\\r\\n sk-8 \\r\\nuser: ann\\r\\n'", "sk-8"),
        ("printf '\\357\\273\\277sk-9'", "sk-9"),
        ("echo sk-10; head -c 300000 /dev/zero", "sk-10"),
        ("sleep 0.2; printf sk-; sleep 0.2; echo 11", "sk-11"),
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
        ("exec >&-; sleep 0.1", "printed no key"),
        ("echo sk-secret; sleep 600 & echo $! > child; exit 4", "failed with exit status 4"),
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
    for command in ("exec >&-; exec sleep 600", "yes sk-secret", "echo sk-secret; exec sleep 600"):
        with pytest.raises(Misconfigured, match="did not finish within"):
            find_key(Settings(api_key_command=command), {})


SERVICES = """
[services.a]
base_url = "http://a"
api_key_env = "A_KEY"
[services.b]
base_url = "http://b"
api_key_command = "echo sk-b"
[services.none]
base_url = "http://none"
[services.openai]
api_key_env = "O_KEY"
"""
OWN = {"http://a": "sk-a", "http://b": "sk-b", "http://none": None, None: "sk-o"}


def test_a_key_goes_with_the_address_of_its_own_service_whatever_chose_them(tmp_path: Path) -> None:
    names, addresses = (None, "a", "b", "none", "openai"), (None, "http://a", "http://b", "http://x")
    config = tmp_path / "config.toml"
    keys = {"A_KEY": "sk-a", "O_KEY": "sk-o", "OPENAI_API_KEY": "sk-open"}
    for by_file in names:
        config.write_text((f"service = '{by_file}'\n" if by_file else "") + SERVICES)
        for variable, flag, ours, theirs, given in product(names, names, addresses, addresses, addresses):
            sources = {"MINO_SERVICE": variable, "MINO_BASE_URL": ours, "OPENAI_BASE_URL": theirs}
            environ = keys | {name: value for name, value in sources.items() if value}
            settings = settle({"service": flag, "base_url": given}, environ, Home(str(tmp_path), is_default=False))
            if settings.api_key_command:  # which is not run each time
                key: str | None = "sk-b"
            else:
                key, _ = find_key(settings, environ)
            chosen = flag or variable or by_file
            replaced = given or (None if flag or variable else ours or theirs)
            if chosen and not replaced:
                assert key == OWN[settings.base_url], (by_file, sources, flag, given)
            else:
                assert key == "sk-open" and settings.base_url == replaced, (by_file, sources, flag, given)


def test_a_variable_of_a_service_that_is_unset_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(SERVICES)
    home = Home(str(tmp_path), is_default=False)
    for environ in ({}, {"A_KEY": ""}, {"A_KEY": " \n"}):
        with pytest.raises(Misconfigured, match="A_KEY is not set, and service 'a' names it for its key"):
            find_key(settle({"service": "a"}, environ, home), environ | {"OPENAI_API_KEY": "sk-open"})
