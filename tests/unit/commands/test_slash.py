"""What Tab completes in `chat`, and that help, completion and usage know the same commands."""

from pathlib import Path

import pytest

from mino.attachments import Attached
from mino.commands import slash
from mino.errors import MinoError, NotFound, SessionInUse, UsageMistake
from mino.home import Home
from mino.model import Model
from mino.responses.client import Client
from mino.responses.server import Server
from mino.sessions.held import Held
from mino.sessions.place import Place, current_name
from mino.terminal.waiting import Waiting
from tests.homes import completed, hold, open_home, path_in, refuse_telling, saved_in, session_of, write

MODEL = Model("m", "nowhere", Client(Server("http://127.0.0.1:9/v1", None, "", 1, 0), refuse_telling), Waiting("m"))


def talk(held: Held) -> slash.Talk:
    """A chat that holds that conversation."""
    return slash.Talk(held, MODEL, Attached())


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
        ("/open 北", "北", ["北京 计划", "北海"]),
        ("/o", "/o", ["/open "]),
        ("/history 1", "1", []),
        ("load b", "b", []),
    ],
)
def test_completion(home: Home, typed: str, word: str, candidates: list[str]) -> None:
    assert slash.complete(home, typed) == (word, candidates)


def test_files_are_completed_after_attach(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "my files"
    (place / "sub").mkdir(parents=True)
    for name in ("plan 1.png", "plan 2.png", ".hidden", "信.txt"):
        (place / name).touch()
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    for typed, candidates in (
        ("", ["plan 1.png", "plan 2.png", "sub/", "信.txt"]),
        ("plan 1", ["plan 1.png"]),
        ("~/信", ["~/信.txt"]),
        (f"{place}/.h", [f"{place}/.hidden"]),
        ("none/x", []),
        ("信.txt/", []),
    ):
        assert slash.complete(home, f"/attach {typed}") == (typed, candidates)
    assert slash.complete(home, "/at") == ("/at", ["/attach "])


def test_completion_without_saved_sessions_or_without_access_offers_none(tmp_path: Path) -> None:
    home = Home(str(tmp_path), is_default=False)
    assert slash.complete(home, "/load ") == ("", [])
    (tmp_path / "saved").write_text("no directory")
    assert slash.complete(home, "/load ") == ("", [])


def test_usage_is_the_command_with_its_argument() -> None:
    assert [slash.usage(name) for name in ("/save", "/open", "/history", "/exit")] == [
        *("/save NAME", "/open [NAME]", "/history [N]", "/exit")
    ]


def test_a_command_is_one_line_and_its_name_ends_at_any_blank(home: Home) -> None:
    with Held(home, None, 0, refuse_telling, None) as held:
        with pytest.raises(UsageMistake, match="unknown command '/usr/bin/python:'; nothing was sent"):
            slash.run(talk(held), "/usr/bin/python:\nnot found")
        with pytest.raises(UsageMistake, match="/clear takes one line"):
            slash.run(talk(held), "/clear\nthe table")
        assert list(slash.run(talk(held), " /save\t两  个 \n")) == ["saved 0 turns as '两  个'"]


@pytest.mark.parametrize("line", ["/save", "/load", "/clear now", "/sessions x", "/undo 1", "/exit now", "/help me"])
def test_an_argument_that_lacks_or_that_is_too_much_is_a_mistake(home: Home, line: str) -> None:
    with Held(home, None, 0, refuse_telling, None) as held, pytest.raises(UsageMistake, match="takes ") as caught:
        slash.run(talk(held), line)
    assert caught.value.hint == slash.usage(line.split()[0])


def test_a_chat_goes_from_one_conversation_to_another(home: Home) -> None:
    write(path_in(home, "北海"), completed(("一", "one")))
    with Held(home, None, 0, refuse_telling, None) as held:
        assert list(slash.run(talk(held), "/open 北海")) == ["opened '北海': 1 turn"]
        assert current_name(home, refuse_telling) == "北海" and held.conversation.place == Place(home, "北海")
        assert list(slash.run(talk(held), "/open 新的 🏕")) == ["opened '新的 🏕': 0 turns"]  # made, as in a shell
        assert path_in(home, "新的 🏕").read_bytes() == b""
        assert list(slash.run(talk(held), "/open")) == ["opened the unnamed conversation: 0 turns"]
        assert current_name(home, refuse_telling) is None and held.conversation.place == Place(home, None)
        assert list(slash.run(talk(held), "/load 北海")) == ["loaded '北海': 1 turn"]
        assert [turn.user for turn in held.conversation.context] == ["一"]
    assert session_of(Path(home.path)) == saved_in(Path(home.path))["北海"]


def test_what_cannot_be_opened_leaves_the_chat_where_it_is(home: Home) -> None:
    with Held(home, None, 0, refuse_telling, None) as held, hold(home, "brain"):
        before = held.conversation
        for line, failure in (
            ("/open brain", SessionInUse),
            ("/open ../x", UsageMistake),
            ("/load 没有", NotFound),
            ("/load -x", UsageMistake),
        ):
            with pytest.raises(failure):
                list(slash.run(talk(held), line))
            assert held.conversation is before and current_name(home, refuse_telling) is None


def test_a_conversation_needs_no_copy_under_its_own_name(home: Home) -> None:
    with Held(home, "北海", 0, refuse_telling, None) as held:
        [told] = slash.run(talk(held), "/save 北海")
        assert told == "this is the conversation '北海'; there is nothing to save"


def test_hints_of_a_shell_are_those_of_the_chat(home: Home) -> None:
    with Held(home, None, 0, refuse_telling, None) as held:
        for line, hint in (("/load 没有", "/sessions"), ("/save -x", "/help")):
            with pytest.raises(MinoError) as caught:
                list(slash.run(talk(held), line))
            assert caught.value.hint == hint
