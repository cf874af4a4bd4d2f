"""The measuring: real processes that do next to nothing. No figure that depends on the machine is asserted."""

import os
import sys
import time
from pathlib import Path

import pytest

from bench.measure import LEAST_ROUNDS, Command, Failed, Spread, TookTooLong, added, alternately, ratios, spread


def python(code: str, **more: object) -> Command:
    """A command that runs `code`."""
    return Command("python", [sys.executable, "-ISc", code], **more)  # type: ignore[arg-type]


def test_a_run_has_its_times_and_its_memory() -> None:
    run = python("x = bytearray(30_000_000); sum(range(100_000))").run()
    assert run.cpu > 0
    assert 0 < run.wall < 600
    assert 30_000_000 < run.rss < 1_000_000_000


def test_the_environment_and_the_folder_are_those_of_the_command(tmp_path: Path) -> None:
    code = "import os; open('seen', 'w').write(os.environ['WORD'] + str('MINO_HOME' in os.environ))"
    python(code, environ={"WORD": "巴黎 🗼"}, cwd=str(tmp_path)).run()
    assert (tmp_path / "seen").read_text() == "巴黎 🗼False"


def test_a_failure_says_the_last_words_of_the_program() -> None:
    with pytest.raises(Failed, match=r"^python ended with 3: no key 钥匙$"):
        python("import sys; print('first\\nno key 钥匙', file=sys.stderr); sys.exit(3)").run()


def test_another_status_can_be_the_expected_one() -> None:
    assert python("raise SystemExit(65)", status=65).run().wall > 0


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    code = "import os, time; child = os.fork(); open(str(os.getpid()), 'w'); time.sleep(600)"
    with pytest.raises(TookTooLong, match=r"python took over 1 s") as caught:
        python(code, cwd=str(tmp_path), limit=1.0).run()
    assert caught.value.command.limit == 1.0
    for pid in map(int, os.listdir(tmp_path)):
        deadline = time.monotonic() + 10
        while is_alive(pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether the process runs; a dead one that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_rounds_alternate_and_each_command_is_prepared_each_time() -> None:
    told: list[str] = []
    commands = [python("", prepare=lambda name=name: told.append(name)) for name in "abc"]
    runs = alternately(commands, 1)
    assert [len(each) for each in runs] == [LEAST_ROUNDS] * 3
    rounds = ["".join(told[start : start + 3]) for start in range(0, len(told), 3)]
    assert rounds == ["abc", *["abc", "bca", "cab"] * 3]


def test_a_round_that_fails_stops_the_comparison() -> None:
    with pytest.raises(Failed):
        alternately([python(""), python("raise SystemExit(1)")], 9)


def test_medians_quartiles_and_ratios() -> None:
    assert spread([4, 1, 2, 3, 5]) == Spread(2, 3, 4)
    assert ratios([2, 4, 9], [1, 2, 3]) == Spread(2, 2, 2.5)
    assert added([3, 1], [1, 2]) == [2, 1e-6]
    assert str(Spread(0.12345, 0.5, 123.4)) == "0.5 (0.123-123)"
