"""Every disk that a power cut can leave, a sample of them; `python -m tests.system.crash_states --all` tries all."""

import random
import subprocess
import sys

from tests.system.crash_disk import SECTOR, Disk, Event, Tree
from tests.system.prefixes import traced
from tests.system.program import ROOT


def test_what_was_promised_is_there_after_a_power_cut() -> None:
    traced()  # skips if there is no strace
    command = [sys.executable, "-m", "tests.system.crash_states"]
    environ = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith(" states, 0 flaws\n")


# The model itself


def states(tree: Tree, *events: Event) -> list[Tree]:
    """What a power cut after `events` can leave."""
    disk = Disk(tree)
    for event in events:
        disk.apply(event)
    return disk.states(None, random.Random(1))


def test_a_sync_settles_the_file_and_not_its_entry() -> None:
    written = [Event("open", "f", fd=3), Event("write", fd=3, data=b"ab"), Event("sync", fd=3)]
    assert states({}, *written) == [{}, {"f": b"ab"}]
    entry = [Event("open", "", fd=4), Event("sync", fd=4)]
    assert states({}, *written, *entry) == [{"f": b"ab"}]
    assert {"f": b"\0\0"} in states({}, *written[:2], *entry)


def test_sectors_of_one_write_come_in_any_order() -> None:
    old, new = b"o" * 10, b"n" * (2 * SECTOR)
    found = states({"f": old}, Event("append", "f", fd=3), Event("write", fd=3, data=new))
    whole = old + new
    for content in (old, whole, whole[:SECTOR], old.ljust(SECTOR, b"\0") + whole[SECTOR:]):
        assert {"f": content} in found
    assert all(tree["f"] is not None and tree["f"].startswith(old) for tree in found)
    assert {"f": whole[:SECTOR].ljust(2 * SECTOR, b"\0") + whole[2 * SECTOR :]} in found


def test_a_rename_leaves_the_old_file_or_the_new_one() -> None:
    tree: Tree = {"f": b"old", "t": b"new"}
    found = states(tree, Event("rename", "t", "f"))
    assert found == [{"f": b"old", "t": b"new"}, {"f": b"old"}, {"f": b"new", "t": b"new"}, {"f": b"new"}]


def test_a_cut_that_is_not_synced_may_come_back_under_what_follows() -> None:
    cut = [Event("append", "f", fd=3), Event("truncate", fd=3, number=1), Event("write", fd=3, data=b"B")]
    assert {"f": b"old"} in states({"f": b"old"}, *cut)
    assert states({"f": b"old"}, *cut, Event("sync", fd=3)) == [{"f": b"oB"}]
