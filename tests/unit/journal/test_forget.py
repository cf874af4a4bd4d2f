"""Which lines of a file hold a turn, damaged files included, and what is left when they are gone."""

from collections.abc import Iterable

import pytest

from mino.journal.forget import Removal, find, forget, ids_in, naming, without
from tests.homes import completed, ended, numbered, questions, state_of, turns_of
from tests.system.program import CASES

A, B, C = completed(("甲", "one")), completed(("乙", "two")), completed(("丙", "three"))
ID_A, ID_B, ID_C = (turns_of(turn)[0].turn_id for turn in (A, B, C))
ALL = numbered(A, B, C)


def spans(content: bytes, *turn_ids: str) -> list[tuple[int, int]]:
    """The first and last line of each removal; the same however the bytes arrive."""
    pieces = [content[place : place + 7] for place in range(0, len(content), 7)]
    found = list(find([content], set(turn_ids)))
    assert list(find(pieces, set(turn_ids))) == found
    return [(removal.first_line, removal.last_line) for removal in found]


def lines(content: bytes, *wanted: int) -> bytes:
    """Lines of `content` by number, from 1."""
    all_lines = content.splitlines(keepends=True)
    return b"".join(all_lines[number - 1] for number in wanted)


def damaged(number: int, new: bytes, content: bytes = ALL) -> bytes:
    """`content` with another line `number`."""
    every = content.split(b"\n")
    every[number - 1] = new
    return b"\n".join(every)


def test_a_whole_file() -> None:
    assert spans(ALL, ID_B) == [(4, 6)]
    assert spans(ALL, ID_A, ID_B) == [(1, 3), (4, 6)]
    assert spans(ALL, "f" * 32) == []
    assert list(find([ALL], {ID_C})) == [Removal(ID_C, 7, 9)]


@pytest.mark.parametrize(
    ("content", "turn_id", "span"),
    [
        (ALL[:-5], ID_C, (7, 9)),  # a torn end
        (numbered(A, B) + b'{"v":1,"se', ID_B, (4, 7)),  # a tail that may be of the turn
        (numbered(A, B) + b'{"v":1,"se', ID_A, (1, 3)),
        (damaged(5, b"\xff\0"), ID_B, (4, 6)),
        (damaged(6, b""), ID_B, (4, 6)),
        (damaged(7, b"{]"), ID_B, (4, 7)),  # up to the next readable record of another turn
        (damaged(4, b"{]"), ID_B, (4, 6)),  # the question itself is broken: it stands before its answer
        (damaged(5, b"{]", damaged(4, b"{]")), ID_B, (4, 6)),
        (damaged(4, b'{"v":1,"turn_id":"' + ID_B.encode() + b'","te'), ID_B, (4, 6)),
        (damaged(4, lines(ALL, 3)[:40] + lines(ALL, 4)[:-1]), ID_B, (4, 6)),  # two records in one line
        (
            damaged(4, b'{"v":2,"seq":4,"type":"user_message","turn_id":"' + ID_B.encode() + b'","text":"x"}'),
            ID_B,
            (4, 6),
        ),
    ],
)
def test_damage(content: bytes, turn_id: str, span: tuple[int, int]) -> None:
    assert spans(content, turn_id) == [span]


def test_a_whole_question_leaves_the_rubbish_before_it_alone() -> None:
    content = damaged(3, b"{]")
    assert spans(content, ID_B) == [(4, 6)]
    assert b"".join(without([content], find([content], {ID_B}), renumber=False)) == lines(content, 1, 2, 3, 7, 8, 9)


def test_what_a_newer_mino_wrote_of_another_turn_is_spared() -> None:
    newer = lines(ALL, 7).replace(b'"v":1', b'"v":2').rstrip(b"\n")
    content = damaged(7, newer)
    assert spans(content, ID_B) == [(4, 6)]
    assert spans(content, ID_C) == [(7, 9)]


def kept(content: bytes, turn_ids: Iterable[str], *, renumber: bool) -> bytes:
    return b"".join(without([content], list(find([content], set(turn_ids))), renumber=renumber))


def test_a_whole_file_is_numbered_anew() -> None:
    assert kept(ALL, [ID_A], renumber=True) == numbered(B, C)
    assert kept(ALL, [ID_A, ID_B, ID_C], renumber=True) == b""
    assert questions(kept(ALL, [ID_B], renumber=True)) == ["甲", "丙"]


def test_a_torn_tail_stays_torn() -> None:
    content = ALL + b'{"v":1,"se'
    assert kept(content, [ID_A], renumber=True) == numbered(B, C) + b'{"v":1,"se'
    assert state_of(kept(content, [ID_A], renumber=True)) == "recoverable"


def test_a_damaged_file_keeps_its_other_lines_byte_for_byte() -> None:
    content = damaged(1, b"{] \xff")
    assert kept(content, [ID_B], renumber=False) == lines(content, 1, 2, 3, 7, 8, 9)


def test_the_ids_of_a_file() -> None:
    assert ids_in([damaged(5, b"x")]) == {ID_A, ID_B, ID_C}
    assert ids_in([b""]) == set()
    assert ids_in([ended(1, "e" * 32, "q", "failed") + b"[]\n7\n{}\n"]) == {"e" * 32}


def test_a_file_on_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("files") / "x.jsonl"
    path.write_bytes(ALL)
    assert forget(str(path), {ID_B}, "", dry_run=True) == [Removal(ID_B, 4, 6)]
    assert path.read_bytes() == ALL
    assert forget(str(path), {ID_B}, "", dry_run=False) == [Removal(ID_B, 4, 6)]
    assert path.read_bytes() == numbered(A, C)
    assert forget(str(path), {ID_B}, "", dry_run=False) == []
    assert [each.name for each in path.parent.iterdir()] == ["x.jsonl"]


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.glob("*.jsonl")))
def test_no_case_is_too_broken(case: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever the file is, the first turn's text is gone, and forgetting a turn twice changes nothing more."""
    path = tmp_path_factory.mktemp("cases") / case
    path.write_bytes((CASES / case).read_bytes())
    for turn_id in sorted(ids_in([path.read_bytes()])):
        forget(str(path), {turn_id}, "", dry_run=False)
        assert turn_id.encode() not in path.read_bytes()
    assert ids_in([path.read_bytes()]) == set()


def test_a_turn_is_named_wherever_its_id_stands() -> None:
    """A run of digits may be longer than an id, and an id that somebody else made may be no 32 digits."""
    odd = "turn 七"
    named_in = naming({ID_A, ID_B, odd})
    assert named_in(b'{"turn_id":"' + ID_B.encode() + b'"') == ID_B
    assert named_in(b"0f" + ID_A.encode() + b"0f") == ID_A
    assert named_in("坏 turn 七 😀".encode()) == odd
    assert named_in(ID_A.encode()[:31]) is None
    assert named_in(b"") is None
