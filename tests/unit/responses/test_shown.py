"""The text as it was shown, and the message that an event is about."""

from mino.responses.shown import REFUSAL, TEXT, Messages, Shown


def test_pieces_and_the_whole_that_repeats_or_continues_them() -> None:
    shown = Shown()
    assert shown.piece((0, 0, TEXT), "巴") == "巴"
    assert shown.whole((0, 0, TEXT), "巴") == ""
    assert shown.whole((0, 0, TEXT), "巴黎 🗼") == "黎 🗼"
    assert shown.whole((0, 0, TEXT), "something else") == ""
    assert shown.text == "巴黎 🗼"


def test_a_newline_stands_between_two_messages_and_a_label_before_a_refusal() -> None:
    shown = Shown()
    said = shown.piece((0, 0, TEXT), "a") + shown.piece((1, 0, TEXT), "b") + shown.piece((1, 1, REFUSAL), "no")
    assert said == "a\nb\nModel refused: no"
    assert (shown.text, shown.refusal) == ("a\nb\nno", True)


def test_two_halves_of_a_character_in_two_pieces_are_one() -> None:
    shown = Shown()
    assert shown.piece((0, 0, TEXT), "a\ud83d") == "a"
    assert shown.piece((0, 0, TEXT), "\uddfcb") == "🗼b"
    assert shown.piece((0, 0, TEXT), "\ud83d") == ""
    assert shown.whole_answer([]) == "\ufffd"
    assert shown.text == "a🗼b\ufffd"


def test_an_index_counts_most_then_an_id_that_was_seen_then_the_open_message() -> None:
    messages = Messages()
    assert messages.of_piece(0, "a") == 0
    assert messages.of_piece(1, "a") == 1
    assert messages.of_piece(0, "other") == 0
    assert messages.of_piece(None, "a") == 1
    assert messages.of_whole(None, "never seen") == 1
    assert messages.of_piece(None, "new") == 2


def test_a_done_event_closes_the_open_message() -> None:
    messages = Messages()
    messages.begin(None, None)
    assert messages.of_piece(None, None) == messages.of_piece(None, "x") == 0
    messages.close()
    assert messages.of_piece(None, None) == 1
