"""A hint is the exact next command: pasted into a shell it runs, whatever the home, a file or a session is called."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mino.terminal import output
from tests.homes import completed, make_home, saved_in, session_of, turns_of, write
from tests.system.program import ROOT, Ended, Program

OLD = completed(("你好，我是张三", "你好，张三 😀"), ("我叫什么名字？", "你叫张三。"))
BYTES = "gr\udcfc\udcdfe"  # Latin-1 in a file name, as Python gets it (PEP 383)
NAMES = ['it\'s a "home" 家', "back\\slash $(exit 9) `exit 9` *", "two\nlines, it's\ttwo \\n"]

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="the quoting of control characters is tried in bash")


def paste(ended: Ended, place: Path) -> Ended:
    """Run the one hint that a command gave, as a person does who copies it from the screen."""
    [hint] = [line.removeprefix("hint: ") for line in ended.err.splitlines() if line.startswith("hint: ")]
    (place / "bin").mkdir(exist_ok=True)
    program = place / "bin" / "mino"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mino "$@"\n')
    program.chmod(0o755)
    environ = {"PATH": f"{program.parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(place)}
    done = subprocess.run(["bash", "-c", hint], env=environ, cwd=place, capture_output=True, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "name", [*NAMES, pytest.param(BYTES, marks=pytest.mark.skipif(sys.platform == "darwin", reason="APFS"))]
)
def test_the_way_out_of_a_damaged_session_can_be_pasted(tmp_path: Path, name: str) -> None:
    home = make_home(tmp_path / name, b"{]\n" + OLD)
    pasted = paste(Program(home, {"MINO_HOME": str(home), "PYTHONPATH": str(ROOT)}).run("history", "show"), tmp_path)
    assert pasted.status == 65
    assert "你叫张三" in pasted.out and "salvage would keep 2 turns" in pasted.err
    assert paste(pasted, tmp_path).status == 0


@pytest.mark.parametrize("name", [*NAMES[:2], "中文 🗼"])
def test_a_session_can_be_loaded_by_the_hint_of_its_import(tmp_path: Path, name: str) -> None:
    home = make_home(tmp_path / "it's", OLD)
    file = tmp_path / "messages.json"
    file.write_text('[{"role": "user", "content": "问"}, {"role": "assistant", "content": "答"}]')
    program = Program(tmp_path / "other", {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)})
    words = ["--home", str(home), "session", "import", name, str(file), "--from", "messages"]
    pasted = paste(program.run(*words), tmp_path)
    assert pasted.status == 0
    assert pasted.err.endswith(f"mino: the conversation '{name}' is current\n")
    assert program.run("--home", str(home), "history", "export", "--format", "text").out.startswith("You> 问")
    assert not (tmp_path / ".mino").exists()  # the hint goes to the home that was named, not to the default one


@pytest.mark.parametrize(
    ("found", "words"),
    [("张三", []), ("it's `x` $(exit 9)", []), ("-i", ["--"]), ("A.C", ["-i", "-E"]), ("a\tb\\", [])],
)
def test_a_search_in_every_conversation_can_be_pasted(tmp_path: Path, found: str, words: list[str]) -> None:
    home = make_home(tmp_path / "it's", OLD[:0], other=completed((found.lower(), "x")))
    program = Program(tmp_path / "other", {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)})
    ended = program.run("--home", str(home), "history", "search", *words, found)
    assert ended.status == 66
    pasted = paste(ended, tmp_path)
    assert (pasted.status, pasted.out.endswith(f": > {found.lower()}\n")) == (0, True)


def test_without_a_named_home_a_hint_names_none(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    ended = Program(home, {"MINO_HOME": str(home), "PYTHONPATH": str(ROOT)}).run("session", "load", "没有")
    assert ended.err.endswith("hint: mino session list\n")


def test_of_two_session_files_the_older_becomes_a_saved_one_where_forget_finds_it(tmp_path: Path) -> None:
    """The hint moved one of them, by name order, to where no command looked: a forgotten turn was still there."""
    home = make_home(tmp_path / "it's", OLD)
    other = write(home / "sessions" / f"{'f' * 32}.jsonl", completed(("秘密 🔑", "s")))
    os.utime(other, (1000, 1000))
    mino = Program(home, {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)})
    assert paste(mino.run("--home", str(home), "history", "show"), tmp_path).status == 0
    assert session_of(home) == OLD and not other.exists()
    (turn,) = turns_of(saved_in(home)["f" * 32])
    assert mino.run("--home", str(home), "history", "forget", turn.turn_id).status == 0
    assert not [path for path in home.rglob("*") if path.is_file() and "秘密".encode() in path.read_bytes()]


def test_each_command_of_a_hint_goes_to_the_home_that_was_named(capfd: pytest.CaptureFixture[str]) -> None:
    """`mino --home X session save NAME && mino session new`: the second half acted on another home."""
    output.name_call("/x y", None)
    try:
        output.hint("mino session save NAME && mino session new")
        output.hint("--context 10 sends less; mino session new (in chat: /clear) starts anew")
        output.hint("mino session load 'what does mino ask'")
        output.hint("mino history recover $'a\\'b mino ask'")
        output.hint("check --base-url")
    finally:
        output.name_call(None, None)
    output.hint("mino session list")
    assert capfd.readouterr().err.splitlines() == [
        "hint: mino --home '/x y' session save NAME && mino --home '/x y' session new",
        "hint: --context 10 sends less; mino --home '/x y' session new (in chat: /clear) starts anew",
        "hint: mino --home '/x y' session load 'what does mino ask'",
        "hint: mino --home '/x y' history recover $'a\\'b mino ask'",
        "hint: check --base-url",
        "hint: mino session list",
    ]


def test_a_hint_names_the_conversation_that_was_named(capfd: pytest.CaptureFixture[str]) -> None:
    output.name_call(None, "计划 1")
    try:
        output.hint("mino history show --turn 3; mino ask Q")
        output.hint(
            "mino history recover --salvage --dry-run '/x/saved/计划 1.jsonl'"
        )  # a FILE, beside which it is an error
        output.hint("mino session list")
    finally:
        output.name_call(None, None)
    assert capfd.readouterr().err.splitlines() == [
        "hint: mino --session '计划 1' history show --turn 3; mino --session '计划 1' ask Q",
        "hint: mino history recover --salvage --dry-run '/x/saved/计划 1.jsonl'",
        "hint: mino session list",
    ]


@pytest.mark.parametrize("salvage", [[], ["--salvage"]])
def test_hints_lead_from_a_damaged_file_to_a_working_conversation(tmp_path: Path, salvage: list[str]) -> None:
    damaged = b"{]\n" + OLD if salvage else OLD[:-20]
    mino = Program(
        make_home(tmp_path / "home", damaged), {"MINO_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    )
    verified = mino.run("history", "verify")
    assert f"hint: mino history recover {'--salvage --dry-run ' if salvage else ''}'{mino.session}'\n" == verified.err
    looked = mino.run("history", "recover", *salvage, "--dry-run")
    assert looked.status == 1 and mino.session.read_bytes() == damaged
    assert paste(looked, tmp_path).status == 0
    assert mino.run("history", "verify").status == 0


def test_forget_names_every_file_under_the_home_that_still_has_the_turn(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    mino = Program(home, {"MINO_HOME": str(home), "PYTHONPATH": str(ROOT)})
    (home / "notes" / "深").mkdir(parents=True)
    moved = [home / "moved.jsonl", home / "notes" / "深" / "backup~", home / "saved.tar"]
    moved[0].write_bytes(OLD)
    moved[1].write_bytes(b"x" * (131072 - 150) + OLD)  # the id lies across two pieces of the file
    moved[2].write_bytes(b"nothing")
    (home / "notes" / ".#lock").symlink_to("ann@host.1234")
    done = mino.run("history", "forget", "1")
    assert done.status == 0
    assert [path for path in moved if f"'{path}' is not a file of Mino's" in done.err] == moved[:2]
    assert done.err.count("\n") == 4 and moved[0].read_bytes() == OLD
