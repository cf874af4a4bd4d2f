"""Ids: the time in a new one, what is no plausible one, and which came before."""

import random
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from mino.journal.ids import SeenIds, id_time, new_id


def test_a_new_id_is_a_uuid_of_version_7_that_carries_the_time() -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    ids = [new_id() for _ in range(10_000)]
    after = datetime.now(UTC)
    assert len(set(ids)) == len(ids)
    for identifier in ids:
        assert len(identifier) == 32 and set(identifier) <= set("0123456789abcdef")
        assert identifier[12] == "7" and identifier[16] in "89ab"
        made = id_time(identifier)
        assert made and before <= made <= after
    # All 74 random bits are used: each hex digit that is all random takes all its values.
    for place in [*range(13, 16), *range(17, 32)]:
        assert len({identifier[place] for identifier in ids}) == 16


@pytest.mark.parametrize("seconds", [-(10**12), -1, -0.0001, 0, 32_503_680_000, 281_474_976_711, 10**12])
def test_an_id_is_32_hex_digits_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: float(seconds))
    ids = [new_id() for _ in range(100)]
    assert all(re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}", identifier) for identifier in ids)
    seen = SeenIds()
    assert len(set(ids)) == 100 and all(map(seen.add, ids))
    assert {id_time(identifier) for identifier in ids} == {None}


def test_ids_sort_by_time() -> None:
    first = new_id()
    time.sleep(0.002)  # two ids of one millisecond are in any order; what is tested is that the clock counts
    assert first < new_id()


@pytest.mark.parametrize(
    "identifier",
    [
        "0193a0b1c2d340008000000000000001",  # version 4
        "0193a0b1c2d37000c000000000000001",  # another variant
        "00000000000070008000000000000001",  # 1970
        "ffffffffffff70008000000000000001",  # after the year 9999
        "f" * 32,
        "0" * 32,
    ],
)
def test_an_id_that_is_no_plausible_version_7_has_no_time(identifier: str) -> None:
    assert id_time(identifier) is None


def test_the_time_of_an_id_is_that_of_rfc_9562() -> None:
    """The example of RFC 9562, appendix A.6: Tuesday, February 22, 2022 2:22:22.00 PM GMT-05:00."""
    made = id_time("017f22e279b07cc398c4dc0c0c07398f")
    assert made == datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)


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
