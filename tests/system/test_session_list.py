"""`mino session list`, for a person and as JSON."""

import json
import os
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from mino.journal import schema
from mino.journal.lock import lock_exclusive
from tests.homes import (
    SESSION,
    completed,
    make_home,
    numbered,
    save,
    write,
)
from tests.system.program import ROOT, Ended, Program, Word

OLD = completed(("你好，我是张三", "你好，张三 😀"), ("我叫什么名字？", "你叫张三。"))
OTHER = completed(("Name a colour.", "Blue."))
MORE = completed(("Drifted?", "Yes."))


def mino(home: Path, *words: Word, prefix: Sequence[Word] = ()) -> Ended:
    """Run `mino session` with these words."""
    return Program(home, {"MINO_HOME": str(home), "PYTHONPATH": str(ROOT)}).run("session", *words, prefix=prefix)


def test_list_is_newest_first_and_marks_the_current_one(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, english=OTHER)
    save(home, "中文名", completed(("长" * 41, "好")))
    save(home, "exact", completed(("x" * 40, "y")))
    save(home, "broken", b"{]\n" + OTHER)
    for age, name in enumerate(["broken", "english", "中文名", "exact"]):
        os.utime(home / "saved" / f"{name}.jsonl", (10**9 - age, 10**9 - age))

    done = mino(home, "list")

    assert done.status == 0
    live, broken, english, chinese, exact = done.out.splitlines()
    assert live.startswith("* ")
    assert live.endswith("-        你好，我是张三")
    assert broken.endswith(f"broken   (invalid: mino history verify '{home}/saved/broken.jsonl')")
    assert english.endswith("    1  english  Name a colour.")
    assert chinese.endswith("    1  中文名   " + "长" * 40 + "…")
    assert exact.endswith("    1  exact    " + "x" * 40)


def test_list_as_json_follows_its_schema(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"", work=OLD, broken=b"{]\n" + OTHER)
    (home / "saved" / "link.jsonl").symlink_to("/nowhere")
    write(home / "saved" / "work-recovery-20260101T000000Z-00000000.jsonl", OLD)  # a recovery copy is no session
    write(home / "saved" / ".hidden.jsonl", OLD)
    (home / "saved" / "notes.txt").touch()
    mino(home, "open", "work")
    write(home / "saved" / "work.jsonl", numbered(OLD, MORE))

    done = mino(home, "list", "--json")

    entries = {entry["name"]: entry for entry in map(json.loads, done.out.splitlines())}
    for entry in entries.values():
        Draft202012Validator(schema.load("session.v1")).validate(entry)
    assert entries.keys() == {None, "work", "broken", "link"}
    work = entries["work"]
    assert (work["current"], work["turns"], work["title"], work["state"]) == (True, 3, "你好，我是张三", "clean")
    assert work["bytes"] == len(numbered(OLD, MORE))
    assert {name: entry["session_id"] for name, entry in entries.items() if entry["session_id"]} == {
        None: SESSION.removesuffix(".jsonl")
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", work["created"])
    assert (entries["broken"]["state"], entries["broken"]["turns"]) == ("invalid", 0)
    assert entries["link"]["state"] == "unreadable"


@pytest.mark.parametrize("current", [None, "工作"])
@pytest.mark.parametrize("busy", [None, "工作", "other"])
def test_list_marks_the_current_one_and_those_in_use(tmp_path: Path, current: str | None, busy: str | None) -> None:
    home = make_home(tmp_path / "home", OLD, 工作=OTHER, other=MORE)
    mino(home, "open", *([current] if current else []))
    with closing(lock_exclusive(str(home / "saved" / f"{busy}.lock" if busy else home / "sessions.lock"), 0)):
        entries = [json.loads(line) for line in mino(home, "list", "--json").out.splitlines()]
        lines = mino(home, "list").out.splitlines()
    assert {entry["name"]: entry["current"] for entry in entries} == {
        name: name == current for name in (None, "工作", "other")
    }
    assert [entry["name"] for entry in entries if entry["state"] == "in-use"] == [busy]
    assert [line[2:].split()[3] for line in lines if line[0] == "*"] == [current or "-"]
    assert [line[2:].split()[3] for line in lines if "  (in use) " in line] == [busy or "-"]
    assert [entry["state"] for entry in map(json.loads, mino(home, "list", "--json").out.splitlines())] == ["clean"] * 3


def test_list_of_an_empty_home_writes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = mino(home, "list")
    assert (done.status, done.out, done.err) == (0, "", "mino: there is no conversation yet\n")
    assert not home.exists()
