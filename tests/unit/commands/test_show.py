"""`history show`: turns for a person, for a program, and as the input of the next request."""

import os
import re
from pathlib import Path

import pytest

from mino.commands.show import local_time, pick, show
from mino.conversation import lock_home
from mino.errors import InvalidData, MinoError, NotThere, UsageMistake
from mino.home import Home
from mino.journal.record import id_time
from tests.unit.commands.homes import judge, make_home, session_of
from tests.unit.journal.sample import CASES, FIRST, ITEM, SECOND, file_of, load, turn, two_turns

Output = pytest.CaptureFixture[str]


def print_session(
    home: Home, last: int | None = None, turn: str | None = None, context: bool = False, as_json: bool = False
) -> int:
    return show(home, last=last, turn=turn, context=context, as_json=as_json)


def test_a_turn_for_a_person(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, file_of(two_turns()).replace("哪里？ 🗼".encode(), b"\\nwhere?"))
    assert print_session(home, last=1) == 0
    made = id_time(SECOND)
    assert made
    assert capfd.readouterr() == (
        f"turn 2  {local_time(made)}  completed  {SECOND}\n> 法国的首都是\n> where?\n\nParis. 巴黎 😀\n",
        "",
    )


def test_the_turns_for_a_program(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, file_of([*two_turns(), *turn(7, "f" * 32)]))
    assert print_session(home, as_json=True) == 0
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
    home = make_home(tmp_path, name)
    report = load(session_of(home).read_bytes())[1]
    assert print_session(home, as_json=True) == (65 if report.state == "invalid" else 0)
    out, err = capfd.readouterr()
    assert [each["status"] for each in judge(out, "turn.v1")] == statuses
    for finding in report.findings:
        assert f"mino: '{session_of(home)}' line {finding.line} (byte {finding.byte}): {finding.code}: " in err
    assert ("the next question recovers it" in err) is (report.state == "recoverable")
    assert ("hint: mino history recover --salvage --dry-run" in err) is (report.state == "invalid")
    assert session_of(home).read_bytes() == (CASES / f"{name}.jsonl").read_bytes()
    assert os.listdir(home.path) == ["sessions"]


def test_what_a_writer_is_doing_is_in_progress(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, "open-question")
    with lock_home(home, 0):
        assert print_session(home, as_json=True) == 0
        assert print_session(home, context=True) == 0
    out, err = capfd.readouterr()
    first, second, context = out.splitlines()
    assert [each["status"] for each in judge(first + "\n" + second, "turn.v1")] == ["completed", "in-progress"]
    assert '"role":"user"' in context
    assert err.count("the session is in use by another process") == 2 and "open-turn" not in err


def test_the_context_is_the_input_of_the_next_request(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, "torn-last-newline")
    assert print_session(home, context=True) == 0
    out, err = capfd.readouterr()
    assert out.startswith('[{"type":"message","role":"user","content":[{"type":"input_text","text":')
    assert out.count('"role":"user"') == 1 and out.count("\n") == 1
    assert "torn-tail" in err
    session_of(home).write_bytes((CASES / "seq-gap.jsonl").read_bytes())
    with pytest.raises(InvalidData) as caught:
        print_session(home, context=True)
    assert caught.value.hint == f"mino history recover --salvage --dry-run '{session_of(home)}'"
    assert capfd.readouterr().out == ""


def test_before_the_first_conversation(tmp_path: Path, capfd: Output) -> None:
    home = Home(str(tmp_path / "missing"), False)
    assert print_session(home) == print_session(home, context=True) == print_session(home, as_json=True) == 0
    assert capfd.readouterr() == ("", "mino: there is no conversation yet\n" * 3)
    assert not os.path.exists(home.path)


def test_only_the_last_turns(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, file_of(two_turns()))
    for last, numbers in ((0, []), (1, [2]), (2, [1, 2]), (99, [1, 2]), (10**20, [1, 2])):
        print_session(home, last=last, as_json=True)
        assert [each["number"] for each in judge(capfd.readouterr().out, "turn.v1")] == numbers


def test_a_turn_is_named_by_its_number_its_id_or_a_beginning() -> None:
    ids = [FIRST, SECOND, "1" * 32, "20" * 16]
    turns, _ = load(file_of([line for number, each in enumerate(ids) for line in turn(number * 3 + 1, each)]))
    for wanted, number in ((FIRST, 1), (SECOND.upper(), 2), ("1", 1), ("1" * 8, 3), ("4", 4), ("20" * 4, 4)):
        assert pick(turns, wanted).number == number
    failures: list[tuple[str, type[MinoError]]] = [
        *(
            ("0193a", UsageMistake),
            ("5", NotThere),
            ("0", NotThere),  # the beginning of an id, but a person means a number: `forget 0` took the only turn
            ("202", NotThere),
            ("٣", NotThere),
            ("", NotThere),
            ("g", NotThere),
            ("\x1b[2J", NotThere),
        ),
        (FIRST + "0", NotThere),
    ]
    for wanted, failure in failures:
        with pytest.raises(failure) as caught:
            pick(turns, wanted)
        assert "\x1b" not in caught.value.message and caught.value.hint


def test_a_turn_that_is_asked_for_is_shown_whatever_n_says(tmp_path: Path, capfd: Output) -> None:
    home = make_home(tmp_path, file_of(two_turns()))
    assert print_session(home, last=1, turn="1") == 0
    assert re.match(r"turn 1 ", capfd.readouterr().out)
    with pytest.raises(NotThere, match="no turn ''"):
        print_session(home, turn="")
