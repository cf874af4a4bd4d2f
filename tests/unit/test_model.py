"""The model that is asked, and the instructions that it gets."""

from pathlib import Path

import pytest

from mino.errors import Misconfigured, NotFound
from mino.home import Home
from mino.model import first_step, name_model, open_model, read_instructions
from mino.responses.request import AS_RECEIVED, PLAIN_TEXT
from mino.settings import DEFAULT_MODEL, Settings

KEY = {"OPENAI_API_KEY": "sk-1"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path), False)


def read_soul(home: Home) -> str | None:
    return read_instructions(home, Settings())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", None),
        (b" \n\t", None),
        (b"\xef\xbb\xbf", None),
        ("用中文回答。\n".encode(), "用中文回答。\n"),
        (b"\xef\xbb\xbfBe brief.", "Be brief."),
    ],
)
def test_the_soul_is_its_text_without_a_byte_order_mark(home: Home, data: bytes, text: str | None) -> None:
    Path(home.soul).write_bytes(data)
    assert read_soul(home) == text
    assert read_instructions(None, Settings(instructions=home.soul)) == text


def test_a_soul_that_exists_and_cannot_be_read_is_an_error(home: Home) -> None:
    path = Path(home.soul)
    assert path.name == "SOUL.md" and read_soul(home) is None
    path.write_bytes(b"caf\xe9")
    with pytest.raises(Misconfigured, match=r"SOUL\.md' is not UTF-8 at byte 3"):
        read_soul(home)
    path.unlink()
    path.mkdir()
    with pytest.raises(Misconfigured, match="is neither a regular file nor a pipe"):
        read_soul(home)


def test_the_file_in_the_settings_stands_in_for_the_soul(home: Home, tmp_path: Path) -> None:
    Path(home.soul).write_bytes(b"Be brief.")
    named = tmp_path / "灵魂 🕊.md"
    settings = Settings(instructions=str(named))
    with pytest.raises(NotFound, match=r"灵魂 🕊\.md' does not exist"):
        read_instructions(home, settings)
    named.write_bytes("用中文回答。".encode())
    assert read_instructions(home, settings) == "用中文回答。"
    named.write_bytes(b"\n")
    assert read_instructions(home, settings) is None  # and not those of SOUL.md, which were not meant
    named.write_bytes(b"Answer in verse.")
    assert read_instructions(home, settings) == "Answer in verse."  # read anew


def test_without_a_home_there_is_no_soul() -> None:
    assert read_instructions(None, Settings()) is None


@pytest.mark.parametrize(
    ("settings", "name", "place"),
    [
        (Settings(), DEFAULT_MODEL, "at https://api.openai.com/v1"),
        (Settings(model="模型 7b"), "模型 7b", "at https://api.openai.com/v1"),
        (Settings(model="m", base_url="http://localhost:8080/v1"), "m", "at http://localhost:8080/v1"),
    ],
)
def test_a_server_is_asked_for_the_model_by_its_name(settings: Settings, name: str, place: str) -> None:
    with open_model(settings, KEY) as model:
        assert (model.name, model.place) == (name, place)
    assert name_model(settings) == name


def test_without_a_key_no_model_is_opened_and_it_has_a_name_all_the_same() -> None:
    with pytest.raises(Misconfigured, match="no key"), open_model(Settings(), {}):
        raise AssertionError
    assert name_model(Settings()) == DEFAULT_MODEL


def test_the_embedded_model_has_its_own_name() -> None:
    assert name_model(Settings(model="/models/模型.gguf", local=True)) == "模型"
    assert name_model(Settings(local=True)) == "SmolLM2-135M-Instruct"


def test_the_replay_ladder_begins_where_the_settings_say() -> None:
    assert first_step(Settings()) == AS_RECEIVED
    assert first_step(Settings(replay="text")) == PLAIN_TEXT
