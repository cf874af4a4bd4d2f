"""`history show`: turns for a person, for a program, and as the input of the next request."""

import json
import os
import re
from pathlib import Path

import pytest

from mino.commands.show import show, show_context
from mino.errors import InvalidData, NotFound, UsageMistake
from mino.home import Home
from mino.journal.ids import id_time
from mino.sessions.place import set_current
from mino.settings import Settings
from mino.terminal import output
from mino.text import local_time
from mino.values import Limit
from tests.homes import EACH_KIND, case, completed, hold, home_with, judge, open_home, session_path
from tests.unit.journal.sample import FIRST, ITEM, SECOND, file_of, load, turn, two_turns

Output = pytest.CaptureFixture[str]


def print_session(
    home: Home,
    last: int | None = None,
    turn: str | None = None,
    context: bool = False,
    as_json: bool = False,
    session: str | None = None,
) -> None:
    if context:
        show_context(home, session, None, Settings(), last=last, turn=turn, with_salvage=False)
    else:
        show(home, session, None, last=last, turn=turn, with_salvage=False, as_json=as_json)


def test_a_turn_for_a_person(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, file_of(two_turns()).replace("哪里？ 🗼".encode(), b"\\nwhere?"))
    print_session(home, last=1)
    made = id_time(SECOND)
    assert made
    assert capfd.readouterr() == (
        f"turn 2  {local_time(made)}  completed  {SECOND}\n> 法国的首都是\n> where?\n\nParis. 巴黎 😀\n",
        "",
    )


def test_the_turns_for_a_program(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, file_of([*two_turns(), *turn(7, "f" * 32)]))
    print_session(home, as_json=True)
    first, second, third = judge(capfd.readouterr().out, "turn.v1")
    assert (first["number"], first["turn_id"], first["lines"], first["output"]) == (1, FIRST, [1, 3], [ITEM])
    assert second["time"] == "2024-12-07T10:37:04.595Z" and third["time"] is None
    assert [each["number"] for each in (first, second, third)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("good-two-turns", ["completed", "completed"]),
        ("empty", []),
        ("failed-and-cancelled", ["completed", "failed", "cancelled", "completed"]),
        ("open-question", ["completed", "open"]),
        ("open-answer", ["completed", "open"]),
        ("torn-last-newline", ["completed", "open"]),
        ("nul-tail-with-newline", ["completed", "completed"]),
        ("fused-records", ["completed"]),
        ("two-questions", ["completed", "open"]),
        ("byte-order-mark", []),
    ],
)
def test_what_is_valid_is_shown_and_what_is_not_is_told(
    tmp_path: Path, capfd: Output, name: str, statuses: list[str]
) -> None:
    home = open_home(tmp_path, case(name))
    report = load(session_path(home).read_bytes())[1]
    failure = None
    try:
        print_session(home, as_json=True)
    except InvalidData as caught:
        failure = caught
        output.show_failure(failure)  # as the program does
    assert (failure.status if failure else 0) == (65 if report.state == "invalid" else 0)
    out, err = capfd.readouterr()
    assert [each["status"] for each in judge(out, "turn.v1")] == statuses
    for finding in report.findings:
        assert f"mino: '{session_path(home)}' line {finding.line} (byte {finding.byte}): {finding.code}: " in err
    assert ("the next question recovers it" in err) is (report.state == "recoverable")
    assert ("hint: mino history show --salvage" in err) is (report.state == "invalid")
    assert session_path(home).read_bytes() == case(name)
    assert os.listdir(home.path) == ["sessions"]


@pytest.mark.parametrize("session", EACH_KIND)
def test_what_a_writer_is_doing_is_in_progress(tmp_path: Path, capfd: Output, session: str | None) -> None:
    home = home_with(tmp_path, session, case("open-question"))
    with hold(home, session):
        print_session(home, as_json=True, session=session)
        print_session(home, context=True, session=session)
    out, err = capfd.readouterr()
    first, second, context = out.splitlines()
    assert [each["status"] for each in judge(first + "\n" + second, "turn.v1")] == ["completed", "in-progress"]
    assert '"role":"user"' in context
    assert err.count("the session is in use by another process") == 2 and "open-turn" not in err


def test_the_context_is_the_input_of_the_next_request(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, case("torn-last-newline"))
    print_session(home, context=True)
    out, err = capfd.readouterr()
    assert out.startswith('[{"type":"message","role":"user","content":[{"type":"input_text","text":')
    assert out.count('"role":"user"') == 1 and out.count("\n") == 1
    assert "torn-tail" in err
    session_path(home).write_bytes(case("seq-gap"))
    with pytest.raises(InvalidData) as caught:
        print_session(home, context=True)
    assert caught.value.hint == f"mino history show --salvage '{session_path(home)}'"
    assert capfd.readouterr().out == ""


def test_the_context_is_what_the_settings_send(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, completed(("一", "one"), ("二", "two"), ("三", "three")))

    def questions(settings: Settings, last: int | None = None, turn: str | None = None) -> list[str]:
        show_context(home, None, None, settings, last=last, turn=turn, with_salvage=False)
        items = json.loads(capfd.readouterr().out)
        return [item["content"][0]["text"] for item in items if item["role"] == "user"]

    assert questions(Settings()) == ["一", "二", "三"]
    assert questions(Settings(context=Limit(2))) == ["二", "三"]
    assert questions(Settings(context=Limit(2)), last=1) == ["三"]
    assert questions(Settings(context=Limit(1)), last=2) == ["三"]
    assert questions(Settings(context=Limit(size=450)), last=3) == ["二", "三"]
    assert questions(Settings(context=Limit(0))) == []
    assert questions(Settings(context=Limit(0)), turn="1") == ["一"]  # it is asked for by name
    show_context(home, None, None, Settings(replay="text"), last=1, turn=None, with_salvage=False)
    assert json.loads(capfd.readouterr().out)[1] == {"type": "message", "role": "assistant", "content": "three"}


def test_before_the_first_conversation(tmp_path: Path, capfd: Output) -> None:
    home = Home(str(tmp_path / "missing"), False)
    print_session(home)
    print_session(home, context=True)
    print_session(home, as_json=True)
    assert capfd.readouterr() == ("", "mino: there is no conversation yet\n" * 3)
    assert not os.path.exists(home.path)


def test_another_conversation_is_shown_than_the_current_one(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, completed(("一", "one")), 巴黎=completed(("二", "two")), 伦敦=completed(("三", "three")))
    for session, question in ((None, "一"), ("巴黎", "二"), ("伦敦", "三")):
        print_session(home, session=session, as_json=True)
        assert [each["user"] for each in judge(capfd.readouterr().out, "turn.v1")] == [question]
    set_current(home, "巴黎")
    print_session(home, as_json=True)
    assert [each["user"] for each in judge(capfd.readouterr().out, "turn.v1")] == ["二"]
    with pytest.raises(NotFound, match="no conversation '没有'"):
        print_session(home, session="没有")
    with pytest.raises(UsageMistake, match="cannot be the name of a conversation"):
        print_session(home, session="../sessions")
    assert capfd.readouterr() == ("", "") and sorted(os.listdir(home.path)) == ["current", "saved", "sessions"]


def test_only_the_last_turns(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, file_of(two_turns()))
    for last, numbers in ((0, []), (1, [2]), (2, [1, 2]), (99, [1, 2]), (10**20, [1, 2])):
        print_session(home, last=last, as_json=True)
        assert [each["number"] for each in judge(capfd.readouterr().out, "turn.v1")] == numbers


def test_a_turn_that_is_asked_for_is_shown_whatever_n_says(tmp_path: Path, capfd: Output) -> None:
    home = open_home(tmp_path, file_of(two_turns()))
    print_session(home, last=1, turn="1")
    assert re.match(r"turn 1 ", capfd.readouterr().out)
    with pytest.raises(NotFound, match="no turn ''"):
        print_session(home, turn="")
