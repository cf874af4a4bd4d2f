"""A hint is the exact next command: pasted into a shell it runs, whatever the home, a file or a session is called."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.homes import completed, make_home, saved_in
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
    assert pasted.status == 1
    assert "salvage would keep 2 turns" in pasted.out


@pytest.mark.parametrize("name", [*NAMES[:2], "中文 🗼"])
def test_a_session_can_be_loaded_by_the_hint_of_its_import(tmp_path: Path, name: str) -> None:
    home = make_home(tmp_path / "it's", OLD)
    file = tmp_path / "messages.json"
    file.write_text('[{"role": "user", "content": "问"}, {"role": "assistant", "content": "答"}]')
    program = Program(tmp_path / "other", {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)})
    words = ["--home", str(home), "session", "import", name, str(file), "--from", "messages"]
    pasted = paste(program.run(*words), tmp_path)
    assert pasted.status == 0
    assert pasted.err.endswith(f"mino: loaded '{name}': 1 turn\n")
    assert OLD in saved_in(home).values()
    assert not (tmp_path / ".mino").exists()  # the hint goes to the home that was named, not to the default one


def test_without_a_named_home_a_hint_names_none(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    ended = Program(home, {"MINO_HOME": str(home), "PYTHONPATH": str(ROOT)}).run("session", "load", "没有")
    assert ended.err.endswith("hint: mino session list\n")
