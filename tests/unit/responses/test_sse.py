"""The decoder against the WHATWG rules and their own examples; any way of cutting a stream gives the same events."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mino.responses.sse import Decoder, Event


def decode(*pieces: bytes, end: bool = False) -> list[Event]:
    decoder = Decoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + (decoder.end() if end else [])


def data(*pieces: bytes, end: bool = False) -> list[bytes]:
    return [event.data for event in decode(*pieces, end=end)]


def reference(stream: bytes) -> list[Event]:
    """The standard's algorithm written down line by line, with no thought of speed; the last block counts too."""
    lines, line, skip = [], b"", False
    for byte in (stream.removeprefix(b"\xef\xbb\xbf")[n : n + 1] for n in range(len(stream))):
        if byte in (b"\r", b"\n"):
            if not (skip and byte == b"\n"):
                lines.append(line)
                line = b""
            skip = byte == b"\r"
        else:
            line += byte
            skip = False
    events: list[Event] = []
    name = b""
    values: list[bytes] = []
    lines += [line, b""]
    for line in lines:
        if not line:
            if values:
                events.append(Event(name.decode("utf-8", "replace"), b"\n".join(values)))
            name, values = b"", []
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"event":
            name = value
        elif field == b"data":
            values.append(value)
    return events


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [b"YHOO\n+2\n10"]),
        (b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n", [b"first event", b"second event"]),
        (b"data\n\ndata\ndata\n\ndata:", [b"", b"\n"]),
        (b"data:test\n\ndata: test\n\n", [b"test", b"test"]),
    ],
)
def test_examples_of_the_standard(stream: bytes, expected: list[bytes]) -> None:
    assert data(stream) == expected


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert data(b"data:  third event\n\n") == [b" third event"]


def test_event_name_is_given_and_does_not_stay_for_the_next_event() -> None:
    assert decode(b"event: a\ndata: 1\n\ndata: 2\n\n") == [Event("a", b"1"), Event("", b"2")]


def test_event_without_data_is_none() -> None:
    assert decode(b"event: ping\n\nid: 7\n\nretry: 10\n\n: comment\n\n\n\n") == []


def test_comment_inside_an_event_does_not_end_it() -> None:
    assert data(b"data: a\n: ping\ndata: b\n\n") == [b"a\nb"]


@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_counts(newline: bytes) -> None:
    assert data(b"data: a\ndata: b\n\ndata: c\n\n".replace(b"\n", newline)) == [b"a\nb", b"c"]


def test_crlf_split_between_pieces_is_one_line_end() -> None:
    assert data(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [b"a\nb"]


def test_event_that_ends_with_cr_is_not_held_back() -> None:
    assert data(b"data: a\r\r") == [b"a"]


def test_newline_after_a_piece_that_ended_with_cr_is_not_a_second_line_end() -> None:
    assert data(b"data: a\r", b"\n", b"data: b\n\n") == [b"a\nb"]


def test_character_split_between_pieces() -> None:
    whole = "data: 你好 😀\n\n".encode()
    for cut in range(len(whole)):
        assert data(whole[:cut], whole[cut:]) == ["你好 😀".encode()]


def test_one_leading_byte_order_mark_is_dropped() -> None:
    assert data(b"\xef\xbb\xbfdata: a\n\n") == [b"a"]
    assert data(b"\xef", b"\xbb", b"\xbf", b"data: a\n\n") == [b"a"]
    assert data(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n") == [b"b"]


def test_unicode_line_separators_are_text() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf"
    assert data(f"data: {text}\n\n".encode()) == [text.encode()]


def test_last_event_without_its_blank_line_is_given_at_the_end() -> None:
    assert data(b"data: a\n\ndata: b", end=True) == [b"a", b"b"]
    assert data(b"data: a\n\ndata: b\n", end=True) == [b"a", b"b"]
    assert data(b"data: a\n\n", end=True) == [b"a"]


def test_event_name_that_is_no_utf8_is_no_error() -> None:
    assert decode(b"event: \xff\ndata: 1\n\n") == [Event("\ufffd", b"1")]


def test_one_long_event_in_small_pieces_takes_linear_time() -> None:
    # 4 MB in 400,000 pieces: joined anew at each piece this would copy 800 GB.
    pieces = [b"data: ", *[b"0123456789"] * 400_000, b"\n\n"]
    [event] = decode(*pieces)
    assert len(event.data) == 4_000_000


TOKENS = [
    b"data",
    b"event",
    b"id",
    b":",
    b" ",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"x",
    "é".encode(),
    "\u2028".encode(),
    b"\xff",
]


@settings(max_examples=400, deadline=None, database=None)
@given(st.lists(st.sampled_from([*TOKENS, b"\xef\xbb\xbf"]), max_size=40), st.data())
def test_any_way_of_cutting_gives_the_events_of_the_standard(tokens: list[bytes], draw: st.DataObject) -> None:
    stream = b"".join(tokens)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*pieces, end=True) == reference(stream)


def test_byte_by_byte_gives_the_events_of_the_standard() -> None:
    chance = random.Random(1)
    for _ in range(300):
        stream = b"".join(chance.choices(TOKENS, k=30))
        assert decode(*(stream[n : n + 1] for n in range(len(stream))), end=True) == reference(stream)
