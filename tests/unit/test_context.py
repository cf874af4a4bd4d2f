"""What is said of the size of a context, and at which numbers of turns it is called large."""

import pytest

from mino.context import tell_context, tell_size

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("turns", "items", "there", "said"),
    [
        (0, [], {}, "0 turns, 0 items, 0 bytes"),
        (1, [{"a": 1}], {"completed": 1}, "1 turn, 1 item, 7 bytes"),
        (
            1,
            [{"a": 1}, {"b": "你🐕"}],
            {"completed": 3, "failed": 0},
            "1 turn, 2 items, 22 bytes; left out: 2 turns (2 completed)",
        ),
        (2, [{"a": 1}], {"completed": 2, "failed": 1}, "2 turns, 1 item, 7 bytes; left out: 1 turn (1 failed)"),
        (0, [], {"open": 1, "completed": 9}, "0 turns, 0 items, 0 bytes; left out: 10 turns (1 open, 9 completed)"),
    ],
)
def test_what_a_context_has_and_lacks(
    turns: int, items: list[dict[str, object]], there: dict[str, int], said: str, capfd: Output
) -> None:
    tell_context(turns, items, there)
    assert capfd.readouterr() == ("", f"mino: the context has {said}\n")


def test_it_is_large_at_a_number_and_at_each_doubling(capfd: Output) -> None:
    for turns in range(1, 200):
        tell_size(turns - 1, turns, 20, "/save 名字, then /clear")
    out, err = capfd.readouterr()
    numbers = [20, 40, 80, 160]
    assert out == "" and err == "".join(
        f"mino: the context is large: {number} turns sent with every question\nhint: /save 名字, then /clear\n"
        for number in numbers
    )


@pytest.mark.parametrize(
    ("before", "turns", "limit", "is_told"),
    [
        (0, 21, 20, True),
        (0, 19, 20, False),
        (20, 21, 20, False),
        (39, 41, 20, True),
        (40, 79, 20, False),
        (25, 100, 20, True),
        (41, 40, 20, False),
        (20, 20, 20, False),
        (0, 1, 1, True),
        (2, 3, 1, False),
        (0, 10**6, 0, False),
    ],
)
def test_only_what_goes_up_over_such_a_number(
    before: int, turns: int, limit: int, is_told: bool, capfd: Output
) -> None:
    tell_size(before, turns, limit, "mino session new")
    assert bool(capfd.readouterr().err) is is_told
