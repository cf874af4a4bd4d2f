"""Many processes in one home: conversations do not wait for each other, and nothing of one gets into another.

With STRESS=1 in the environment the numbers are those of a long day: some minutes.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.server import Recorded, Reply, ScriptedServer, completed
from tests.system.program import PATIENCE, Program, finish, load, read_until, sent_texts
from tests.system.stress import KILLED, OPERATIONS, Stress

FULL = bool(os.environ.get("STRESS"))
SESSIONS = (None, "a", "第二", "c 🙂", "d", "e")


def echo(request: Recorded) -> Reply:
    """An answer that shows which question it belongs to."""
    return completed(f"答 {sent_texts(request.json)[-1]}")


@pytest.fixture
def echoing(mino: Program) -> Iterator[ScriptedServer]:
    """A server that repeats each question; `mino` asks it."""
    with ScriptedServer(always=echo) as server:
        mino.environ["OPENAI_BASE_URL"] = server.url
        yield server


def content(mino: Program, name: str | None) -> bytes:
    """What the file of the conversation holds."""
    return (mino.session if name is None else mino.home / "saved" / f"{name}.jsonl").read_bytes()


def test_many_processes_on_six_conversations(mino: Program, echoing: ScriptedServer) -> None:
    processes, questions = (20, 25) if FULL else (9, 2)
    loop = f'for n in $(seq {questions}); do "$@" "$QUESTION.$n" || exit; done'
    started = []
    for number in range(processes):
        name = SESSIONS[number % len(SESSIONS)]
        words = ["ask", "--wait", "60", *([] if name is None else ["--session", name])]
        started.append(mino.start(*words, prefix=["sh", "-c", loop, "sh"], env={"QUESTION": f"问{number}"}))
    ends = [finish(process, patience=PATIENCE * questions) for process in started]
    assert [end.status for end in ends] == [0] * processes, [end.err for end in ends]
    for place, name in enumerate(SESSIONS):
        turns, report = load(content(mino, name))
        own = [f"问{number}" for number in range(place, processes, len(SESSIONS))]
        assert (report.state, report.turns) == ("clean", {"completed": len(own) * questions})
        assert [turn.assistant for turn in turns] == [f"答 {turn.user}" for turn in turns]
        for question in own:
            in_order = [turn.user for turn in turns if turn.user.partition(".")[0] == question]
            assert in_order == [f"{question}.{n}" for n in range(1, questions + 1)]
        # What was sent was the conversation itself, and nothing of another.
        sent = [sent_texts(request.json) for request in echoing.requests]
        mine = [texts for texts in sent if texts[-1].partition(".")[0] in own]
        whole = [text for turn in turns for text in (turn.user, turn.assistant)]
        assert sorted(mine, key=len) == [whole[: 2 * n + 1] for n in range(len(turns))]
    assert mino.run("history", "verify", *(f"{mino.home}/saved/{name}.jsonl" for name in SESSIONS[1:])).status == 0
    assert {path.read_bytes() for path in mino.home.rglob("*.lock")} == {b""}


def test_a_chat_stays_open_while_another_conversation_is_asked(mino: Program, echoing: ScriptedServer) -> None:
    times = 100 if FULL else 5
    chat = mino.start("chat", "--session", "谈话", stdin=-1)
    read_until(chat.stdout, b"You> ")
    for number in range(times):
        asked = mino.run("ask", "--session", "other", f"问 {number}")
        assert (asked.status, asked.out, asked.err) == (0, f"答 问 {number}\n", "")
        if number % 2:
            assert chat.stdin
            chat.stdin.write(f"谈 {number}\n".encode())
            chat.stdin.flush()
            read_until(chat.stdout, b"You> ")
    refused = mino.run("ask", "--session", "谈话", "now")
    assert refused.status == 75 and f"in use by process {chat.pid} (mino chat)" in refused.err
    assert finish(chat, "谈 end\n".encode()).status == 0
    assert [turn.user for turn in load(content(mino, "other"))[0]] == [f"问 {number}" for number in range(times)]
    told = [f"谈 {number}" for number in range(1, times, 2)]
    assert [turn.user for turn in load(content(mino, "谈话"))[0]] == [*told, "谈 end"]


def test_random_commands_some_of_them_killed_lose_nothing(mino: Program, echoing: ScriptedServer) -> None:
    seed = int(os.environ.get("SEED") or random.randrange(10**6))
    stress = Stress(mino, seed)
    chat = mino.start("chat", "--session", "谈话", stdin=-1)
    read_until(chat.stdout, b"You> ")
    try:
        stress.run(500 if FULL else 48, 4)
    finally:
        talked = finish(chat, "谈\n".encode())
    assert talked.status == 0, (seed, talked)
    flaws = [*stress.flaws(), *stress.left()]
    assert not flaws, (seed, flaws)
    assert [turn.user for turn in load(content(mino, "谈话"))[0]] == ["谈"]
    kinds = Counter(each.kind for each in stress.done if each.ended.status != KILLED)
    assert stress.asked and (not FULL or kinds.keys() == OPERATIONS.keys()), (seed, kinds)
