"""What a line matches, and which lines there are."""

from pathlib import Path

import pytest

from mino.errors import UsageMistake
from mino.journal.record import EndStatus
from mino.sessions.place import Place
from mino.sessions.search import Found, Search, compile_pattern
from tests import homes
from tests.homes import completed, open_home

ANY = compile_pattern(".", ignore_case=False, is_expression=True)
TEXT = completed(("Où est Paris ?\nEt 巴黎 🗼?", "In France.\n\nParis, paris."), ("a.c", "abc"))


def find(tmp_path: Path, text: str, content: bytes, **options: bool) -> list[Found]:
    """What `text` finds in a conversation of that content."""
    home = open_home(tmp_path / "home", content)
    flags = {"ignore_case": False, "is_expression": False, **options}
    searching = Search(Place(home, None), str(homes.session_path(home)), compile_pattern(text, **flags))
    found = list(searching)
    assert searching.report.state == homes.state_of(content)
    return found


def lines_of(found: list[Found]) -> list[str]:
    """The lines alone."""
    return [line for each in found for _, line in each.lines]


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
        (r"paris\.\Z", {"is_expression": True}, ["Paris, paris."]),
        (r"\AEt", {"is_expression": True}, ["Et 巴黎 🗼?"]),
        (r"France\.(?!\s)", {"is_expression": True}, ["In France."]),
        (r"(?<!\s)Paris, ", {"is_expression": True}, ["Paris, paris."]),
    ],
)
def test_lines(tmp_path: Path, text: str, options: dict[str, bool], lines: list[str]) -> None:
    assert lines_of(find(tmp_path, text, TEXT, **options)) == lines


def test_a_match_says_where(tmp_path: Path) -> None:
    [found] = find(tmp_path, "paris", TEXT, ignore_case=True)
    assert (found.turn.number, [role for role, _ in found.lines]) == (1, ["user", "assistant"])
    pattern = compile_pattern("paris", ignore_case=True, is_expression=False)
    assert [list(pattern.spans(line)) for _, line in found.lines] == [[(7, 12)], [(0, 5), (7, 12)]]


def test_a_turn_without_an_answer_has_no_empty_line(tmp_path: Path) -> None:
    failed = homes.ended(1, "a" * 32, "failed 问", "failed")
    assert find(tmp_path, "^$", failed, is_expression=True) == []
    assert lines_of(find(tmp_path / "2", "问", failed)) == ["failed 问"]


@pytest.mark.parametrize("status", ["failed", "cancelled", "interrupted"])
def test_turns_of_every_status_are_searched(tmp_path: Path, status: EndStatus) -> None:
    content = homes.numbered(TEXT, homes.ended(1, "a" * 32, "Où 🗼", status), completed(("🗼", "x")))
    assert [each.turn.status for each in find(tmp_path, "🗼", content)] == ["completed", status, "completed"]
    assert [each.turn.status for each in find(tmp_path / "2", "🗼", content[: content.rindex(b'{"v"')])][-1] == "open"


LONG = completed(*((f"问 {number} " + "字" * 300, "答" * 300) for number in range(2000)))  # 4 MB: several pauses


def test_a_writer_goes_on_while_matches_are_read(tmp_path: Path) -> None:
    home = open_home(tmp_path, LONG)
    searching = iter(Search(Place(home, None), str(homes.session_path(home)), ANY))
    with homes.hold(home):  # no lock yet
        pass
    next(searching)
    with homes.hold(home):
        assert len(list(searching)) == 1999


def test_what_a_writer_does_meanwhile_is_no_damage(tmp_path: Path) -> None:
    """The end that was read in part before the writer recovered it, and what was then written there, made one line."""
    end = LONG.index(b"\n", LONG.index(b"turn_end", 1_000_000)) + 1  # the first pause is at 1 MiB, in the torn end
    home = open_home(tmp_path, LONG[:end] + b'{"v":1,"seq":' + b"9" * 300_000)
    path = homes.session_path(home)
    searching = Search(Place(home, None), str(path), ANY)
    found = iter(searching)
    next(found)
    path.write_bytes(LONG)  # in place, as a cut and appends are
    list(found)
    assert searching.report.state == "clean"


@pytest.mark.parametrize(("damage", "state"), [(b"{]\n", "recoverable"), (b"{]\n{]\n", "invalid")])
def test_damage_after_a_pause_is_reported(tmp_path: Path, damage: bytes, state: str) -> None:
    assert len(find(tmp_path, "问", LONG + damage)) == 2000
    assert homes.state_of(LONG + damage) == state


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
