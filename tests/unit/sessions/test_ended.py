"""The ended turns of a conversation, which are read without its lock, and kept before another takes its place."""

import os
from pathlib import Path

import pytest

from mino.errors import InvalidData, MinoError, NotFound, StorageFailed
from mino.sessions import saved
from tests.homes import case, completed, turns_of
from tests.unit.journal.sample import FIRST, question
from tests.unit.sessions.conftest import ContentOf

OLD = completed(("旧", "old"))
LONGER, OTHER = completed(("旧", "old"), ("新", "new")), completed(("新", "new"))


@pytest.mark.parametrize(
    ("name", "turns"),
    [
        ("good-two-turns", 2),
        ("failed-and-cancelled", 4),
        ("empty", 0),
        ("torn-40-bytes", 2),
        ("torn-last-newline", 1),
        ("torn-half-character", 2),
        ("nul-tail", 2),
        ("nul-tail-with-newline", 2),
        ("open-question", 1),
        ("open-answer", 1),
        ("torn-write-answer", 1),
        ("torn-write-both", 1),
    ],
)
def test_the_ended_turns_are_a_beginning_that_no_writer_changes(directory: Path, name: str, turns: int) -> None:
    path = directory / "a.jsonl"
    path.write_bytes(case(name))
    with saved.open_ended(str(path)) as content:
        data = b"".join(content.chunks())
        assert content.turns == turns == len(turns_of(data)) and content.size == len(data)
        assert {turn.status for turn in turns_of(data)} <= {"completed", "failed", "cancelled", "interrupted"}
        assert case(name).startswith(data)
        with path.open("ab") as writer:  # a writer goes on meanwhile
            writer.write(b"x" * 10_000)
        assert b"".join(content.chunks()) == data
    assert path.read_bytes() == case(name) + b"x" * 10_000


def test_a_turn_that_waits_for_its_answer_is_left_out(directory: Path, content_of: ContentOf) -> None:
    content = content_of(LONGER + question(7, FIRST, "还没有回答 🐢") + b"\n")
    assert (content.turns, content.size) == (2, len(LONGER))
    assert saved.store(str(directory), "名", content) == saved.Saved("名", 2)
    assert (directory / "名.jsonl").read_bytes() == LONGER
    assert saved.store(str(directory), "名", content_of(LONGER + b'{"v":1,')) == saved.Saved("名", 2, is_new=False)


@pytest.mark.parametrize(
    "name", ["seq-gap", "newer-version", "fused-records", "broken-last-answer", "nul-in-the-middle"]
)
def test_an_invalid_conversation_has_no_ended_turns(directory: Path, name: str) -> None:
    path = directory / "a.jsonl"
    path.write_bytes(case(name))
    with pytest.raises(InvalidData, match=r"a\.jsonl"), saved.open_ended(str(path)):
        raise AssertionError


def test_what_cannot_be_opened_has_none(tmp_path: Path, directory: Path) -> None:
    (directory / "link.jsonl").symlink_to("nowhere")
    (tmp_path / "文件").write_bytes(b"")
    failures: list[tuple[Path, type[MinoError], str]] = [
        (directory / "x.jsonl", NotFound, "does not exist"),
        (directory / "link.jsonl", StorageFailed, "symbolic link"),
        (directory, StorageFailed, "not a regular file"),
        (
            tmp_path / "文件" / "检查点.jsonl",
            StorageFailed,
            "Not a directory",
        ),  # it may be there
    ]
    for path, failure, words in failures:
        with pytest.raises(failure, match=words), saved.open_ended(str(path)):
            raise AssertionError


@pytest.mark.parametrize("data", [b"", question(1, FIRST, "?") + b"\n", b'{"v":1,'])
def test_what_holds_no_turn_is_not_kept(tmp_path: Path, content_of: ContentOf, data: bytes) -> None:
    assert saved.keep(str(tmp_path / "saved"), content_of(data), None) is None
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("name", [None, "名"])
def test_what_is_about_to_be_replaced_is_kept_once(
    tmp_path: Path, content_of: ContentOf, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "now", lambda: 0.0)
    place, copy = str(tmp_path / "saved"), "名.~19700101T000000Z~" if name else "auto-19700101T000000Z"
    assert saved.keep(place, content_of(OLD), name) == saved.Saved(copy, 1)
    assert (tmp_path / "saved" / f"{copy}.jsonl").read_bytes() == OLD
    assert (tmp_path / "saved").stat().st_mode & 0o777 == 0o700
    assert saved.keep(place, content_of(OLD), name) == saved.Saved(copy, 1, is_new=False)
    assert len(os.listdir(place)) == 1


def test_a_conversation_is_no_copy_of_itself(directory: Path, content_of: ContentOf) -> None:
    """`/undo` in a named conversation relied on the very file that it then cut."""
    (directory / "名.jsonl").write_bytes(OLD)
    kept = saved.keep(str(directory), content_of(OLD), "名")
    assert kept and kept.is_new and kept.name.startswith("名.~")
    assert saved.keep(str(directory), content_of(OLD), None) == saved.Saved("名", 1, is_new=False)
