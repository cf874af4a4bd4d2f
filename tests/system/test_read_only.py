"""A home that cannot be written: writers stop before anything is sent, readers work and create nothing."""

import os
from collections.abc import Iterator

import pytest

from tests.server import ScriptedServer
from tests.system.prefixes import mounted, ordinary
from tests.system.program import BOTH, CASES, Program, Word

GOOD = (CASES / "good-two-turns.jsonl").read_bytes()
TORN = (CASES / "torn-40-bytes.jsonl").read_bytes()
READERS: list[list[Word]] = [
    ["history", "show"],
    ["history", "show", "--context"],
    ["history", "verify"],
    ["ask", "--dry-run", "q"],
    ["history", "recover", "--dry-run"],
]


@pytest.fixture(params=["modes", "mount"])
def read_only(request: pytest.FixtureRequest, mino: Program) -> Iterator[list[Word]]:
    """A prefix under which the home is read-only, with the session that a test writes before it runs anything."""
    if request.param == "mount":
        yield mounted('mount --bind "$MINO_HOME" "$MINO_HOME" && mount -o remount,bind,ro "$MINO_HOME" && "$@"')
        return
    prefix = ordinary()
    yield ["sh", "-c", 'chmod 500 "$MINO_HOME" "$MINO_HOME"/*/ && "$@"', "sh", *prefix]
    for path in (mino.home, *mino.home.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)


@BOTH
def test_a_writer_stops(mino: Program, server: ScriptedServer, read_only: list[Word]) -> None:
    path = mino.write_session(GOOD)
    stopped = mino.run("ask", "q", prefix=read_only)
    assert (stopped.status, stopped.out) == (73, "") and mino.lock.name in stopped.err
    assert not server.connections and path.read_bytes() == GOOD


@BOTH
def test_a_writer_that_has_a_lock_stops_too(mino: Program, server: ScriptedServer, read_only: list[Word]) -> None:
    path = mino.write_session(TORN)
    mino.lock.touch(0o600)
    for words in (["ask", "q"], ["history", "recover"]):
        stopped = mino.run(*words, prefix=read_only)
        # Where only the folders are read-only the lock opens; then the recovery copy is what cannot be made.
        assert (stopped.status, stopped.out) == (73 if "-recovery-" in stopped.err else 74, "")
        assert "Read-only file system" in stopped.err or "Permission denied" in stopped.err
    assert not server.connections and mino.files() == [path] and path.read_bytes() == TORN


@BOTH
@pytest.mark.parametrize("lock", [False, True])
def test_readers_work(mino: Program, read_only: list[Word], lock: bool) -> None:
    mino.write_session(TORN)
    if lock:
        mino.lock.touch(0o600)
    before = sorted(mino.home.rglob("*"))
    for words in READERS:
        read = mino.run(*words, prefix=read_only)
        assert read.status == (1 if words[1:] in (["verify"], ["recover", "--dry-run"]) else 0), (words, read.err)
        assert read.out
    assert sorted(mino.home.rglob("*")) == before


def test_there_is_no_home_yet(mino: Program, server: ScriptedServer, read_only: list[Word]) -> None:
    (mino.home / "sessions").mkdir(parents=True, mode=0o700)
    inside = {"MINO_HOME": str(mino.home / "new")}
    script = f'export MINO_HOME="{inside["MINO_HOME"]}"; exec "$@"'
    for words, status in ((["ask", "q"], 73), (["history", "show"], 0), (["history", "verify"], 0)):
        ended = mino.run(*words, prefix=[*read_only, "sh", "-c", script, "sh"])
        assert ended.status == status, ended.err
        assert "cannot create" in ended.err if status else "no conversation yet" in ended.err
    assert not server.connections


@BOTH
@pytest.mark.parametrize("what", ["lock", "session", "folder"])
def test_what_may_not_be_read_is_told(mino: Program, server: ScriptedServer, what: str) -> None:
    path = mino.write_session(GOOD)
    mino.lock.touch(0o600)
    hidden = {"lock": mino.lock, "session": path, "folder": path.parent}[what]
    hidden.chmod(0)
    stopped = mino.run("ask", "q", prefix=ordinary())
    hidden.chmod(0o700)
    no_lock = what == "folder" and mino.name  # its lock is in there, and whether it is cannot be seen
    status, said = (73, f"cannot create '{mino.lock}'") if no_lock else (77, f"cannot open '{hidden}'")
    assert stopped.status == status and f"{said}: Permission denied" in stopped.err
    assert not server.connections and path.read_bytes() == GOOD


@pytest.mark.parametrize(("name", "status"), [("SOUL.md", 78), ("config.toml", 78)])
def test_settings_that_may_not_be_read_are_told(mino: Program, server: ScriptedServer, name: str, status: int) -> None:
    mino.write_session(GOOD)
    (mino.home / name).touch(0)
    stopped = mino.run("ask", "q", prefix=ordinary())
    assert stopped.status == status and f"cannot open '{mino.home / name}': Permission denied" in stopped.err
    assert not server.connections


@BOTH
def test_modes_hold_whatever_the_umask(mino: Program, server: ScriptedServer) -> None:
    for umask in ("000", "277", "777"):
        ended = mino.run("ask", "q", prefix=["sh", "-c", f'umask {umask}; exec "$@"', "sh", *ordinary()])
        assert ended.status == 0, ended.err
    modes = {path.name: path.stat().st_mode & 0o777 for path in (mino.home, *mino.home.rglob("*"))}
    session = mino.session.name
    private = dict.fromkeys((".gitignore", mino.lock.name, session), 0o600)
    assert modes == {mino.home.name: 0o700, mino.folder.name: 0o700, **private}


@BOTH
def test_wide_modes_are_narrowed_and_told_once(mino: Program, server: ScriptedServer) -> None:
    path = mino.write_session(GOOD)
    path.chmod(0o644)
    path.parent.chmod(0o755)
    verified = mino.run("history", "verify")
    assert verified.status == 0 and verified.out.count("wide-permissions") == 2
    first, second = mino.run("ask", "q"), mino.run("ask", "q")
    assert first.status == 0 and first.err.count("mino: narrowed") == 2 and second.err == ""
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert os.stat(mino.home).st_mode & 0o777 == 0o700
