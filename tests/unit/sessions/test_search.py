"""What a line matches, and which lines there are."""

from pathlib import Path

import pytest

from mino.errors import UsageMistake
from mino.sessions.place import Place
from mino.sessions.search import Match, compile_pattern, search
from tests import homes
from tests.homes import completed, open_home

TEXT = completed(("Où est Paris ?\nEt 巴黎 🗼?", "In France.\n\nParis, paris."), ("a.c", "abc"))


def find(tmp_path: Path, text: str, content: bytes, **options: bool) -> list[Match]:
    """The matches of `text` in a conversation of that content."""
    home = open_home(tmp_path / "home", content)
    flags = {"ignore_case": False, "is_expression": False, **options}
    matches, report = search(Place(home, None), str(homes.session_path(home)), compile_pattern(text, **flags))
    assert report.state == homes.state_of(content)
    return matches


@pytest.mark.parametrize(
    ("text", "options", "lines"),
    [
        ("Paris", {}, ["Où est Paris ?", "Paris, paris."]),
        ("paris", {"ignore_case": True}, ["Où est Paris ?", "Paris, paris."]),
        ("巴黎 🗼", {}, ["Et 巴黎 🗼?"]),
        ("a.c", {}, ["a.c"]),
        ("a.c", {"is_expression": True}, ["In France.", "a.c", "abc"]),
        ("^Paris", {"is_expression": True}, ["Paris, paris."]),
        (r"\?$", {"is_expression": True}, ["Où est Paris ?", "Et 巴黎 🗼?"]),
        ("^$", {"is_expression": True}, [""]),
        ("(", {}, []),
    ],
)
def test_lines(tmp_path: Path, text: str, options: dict[str, bool], lines: list[str]) -> None:
    assert [match.line for match in find(tmp_path, text, TEXT, **options)] == lines


def test_a_match_says_where(tmp_path: Path) -> None:
    first, second = find(tmp_path, "paris", TEXT, ignore_case=True)
    assert (first.number, first.role, first.spans) == (1, "user", [(7, 12)])
    assert (second.number, second.role, second.spans) == (1, "assistant", [(0, 5), (7, 12)])


def test_a_turn_without_an_answer_has_no_empty_line(tmp_path: Path) -> None:
    failed = homes.ended(1, "a" * 32, "failed 问", "failed")
    assert find(tmp_path, "^$", failed, is_expression=True) == []
    assert [match.line for match in find(tmp_path / "2", "问", failed)] == ["failed 问"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the pattern is empty"),
        ("a\nb", "the pattern has more than one line"),
        ("(", "bad regular expression '(': missing ), unterminated subpattern at character 1"),
        ("a{99999999999}", "bad regular expression"),
        ("(?P<a", "bad regular expression"),
        ("[z-a]", "at character 2"),
    ],
)
def test_a_bad_pattern(text: str, says: str) -> None:
    with pytest.raises(UsageMistake) as mistake:
        compile_pattern(text, ignore_case=False, is_expression=True)
    assert says in mistake.value.message
