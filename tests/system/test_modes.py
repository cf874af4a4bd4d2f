"""File systems without modes, as vfat: chmod is refused, or has no effect (injected into the system calls)."""

from pathlib import Path

import pytest

from tests.server import ScriptedServer
from tests.system.prefixes import traced
from tests.system.program import BOTH, Program, Word, two_turns

# What chmod says there: it is refused, it is not supported, it succeeds and changes nothing.
ANSWERS = ["error=EPERM", "error=EOPNOTSUPP", "retval=0"]
CALLS = "?chmod,fchmod,fchmodat,?fchmodat2"


def without_modes(answer: str, log: Path) -> list[Word]:
    """A prefix under which every chmod has this answer."""
    return traced("-o", str(log), "-e", f"trace={CALLS}", "-e", f"inject={CALLS}:{answer}")


@BOTH
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_first_start_works(mino: Program, server: ScriptedServer, tmp_path: Path, answer: str) -> None:
    for number in range(2):
        ended = mino.run("ask", "q", prefix=without_modes(answer, tmp_path / f"log {number}"))
        assert (ended.status, ended.out, ended.err) == (0, "巴黎 🗼\n", "")
    assert (tmp_path / "log 0").read_text().count("(INJECTED)") >= 3  # the home, the folder, the file
    assert mino.types().count("completed") == 2


@BOTH
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_stays_wide_is_told_in_one_true_sentence(
    mino: Program, server: ScriptedServer, tmp_path: Path, answer: str
) -> None:
    path = mino.write_session(two_turns())
    for _ in range(2):
        path.chmod(0o666)
        path.parent.chmod(0o777)
        ended = mino.run("ask", "q", prefix=without_modes(answer, tmp_path / "log"))
        assert (ended.status, ended.out) == (0, "巴黎 🗼\n")
        assert ended.err == (
            f"mino: '{path.parent}' has mode 0777, which cannot be narrowed to 0700; the same is true of 1 more\n"
        )
    assert path.stat().st_mode & 0o777 == 0o666
    assert mino.run("ask", "q").err.count("mino: narrowed ") == 2  # where there are modes again


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_default_home_that_stays_wide_is_told_as_it_is(
    mino: Program, server: ScriptedServer, tmp_path: Path, answer: str
) -> None:
    home = tmp_path / ".mino"
    (home / "sessions").mkdir(parents=True)
    (home / "sessions").chmod(0o700)
    home.chmod(0o777)
    ended = mino.run("ask", "q", env={"MINO_HOME": ""}, prefix=without_modes(answer, tmp_path / "log"))
    assert (ended.status, ended.err) == (0, f"mino: the home '{home}' has mode 0777: others can reach it\n")
    ended = mino.run("ask", "q", env={"MINO_HOME": ""})
    assert (ended.status, ended.err) == (0, f"mino: narrowed '{home}' from mode 0777 to 0700\n")
