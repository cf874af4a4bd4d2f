"""Turn ids that came before: rising ones, and others, give the same answers as a set."""

import random

import pytest

from mino.journal.record import new_id
from mino.journal.seen import SeenIds


@pytest.mark.parametrize("rising", [0, 1, 20_000, 40_000])
def test_as_a_set_would_say(rising: int) -> None:
    choice = random.Random(rising)
    ids = sorted(f"{choice.getrandbits(128):032x}" for _ in range(rising))
    ids += [f"{choice.getrandbits(128):032x}" for _ in range(50)] + choice.choices(ids or ["0" * 32], k=500)
    seen, known = SeenIds(), set[str]()
    for identifier in ids:
        assert seen.add(identifier) == (identifier not in known)
        known.add(identifier)


def test_the_highest_id_again() -> None:
    seen, identifier = SeenIds(), new_id()
    assert seen.add(identifier)
    assert not seen.add(identifier)
    assert not seen.add(identifier)
