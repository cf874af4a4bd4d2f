"""What Tab completes in `chat`, and that help, completion and usage know the same commands."""

from pathlib import Path

import pytest

from mino.commands import slash
from mino.errors import UsageMistake
from mino.home import Home
from mino.sessions.conversation import open_conversation
from tests.homes import open_home, refuse_telling


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home", None, **dict.fromkeys(("北京 计划", "北海", "brain", ".hidden"), b""))


@pytest.mark.parametrize(
    ("typed", "word", "candidates"),
    [
        ("/s", "/s", ["/save ", "/sessions"]),
        ("/e", "/e", ["/exit"]),
        ("/x", "/x", []),
        ("", "", []),  # Tab in an empty question offers nothing
        ("question", "question", []),
        ("/load ", "", ["brain", "北京 计划", "北海"]),
        ("/load 北", "北", ["北京 计划", "北海"]),
        ("/load 北京 计", "北京 计", ["北京 计划"]),
        ("/save br", "br", ["brain"]),
        ("/history 1", "1", []),
        ("load b", "b", []),
    ],
)
def test_completion(home: Home, typed: str, word: str, candidates: list[str]) -> None:
    assert slash.complete(home, typed) == (word, candidates)


def test_completion_without_saved_sessions_or_without_access_offers_none(tmp_path: Path) -> None:
    home = Home(str(tmp_path), is_default=False)
    assert slash.complete(home, "/load ") == ("", [])
    (tmp_path / "saved").write_text("no directory")
    assert slash.complete(home, "/load ") == ("", [])


def test_usage_is_the_command_with_its_argument() -> None:
    assert [slash.usage(name) for name in ("/save", "/history", "/exit")] == ["/save NAME", "/history [N]", "/exit"]


def test_a_command_is_one_line_and_its_name_ends_at_any_blank(home: Home) -> None:
    with open_conversation(home, 0, refuse_telling) as conversation:
        with pytest.raises(UsageMistake, match="unknown command '/usr/bin/python:'; nothing was sent"):
            slash.run(home, conversation, "/usr/bin/python:\nnot found")
        with pytest.raises(UsageMistake, match="/clear takes one line"):
            slash.run(home, conversation, "/clear\nthe table")
        assert list(slash.run(home, conversation, " /save\t两  个 \n")) == ["saved 0 turns as '两  个'"]
