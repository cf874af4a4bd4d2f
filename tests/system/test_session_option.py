"""`--session` and MINO_SESSION: a command says in one call which conversation it means."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from mino.journal.lock import lock_exclusive
from tests import homes
from tests.homes import completed, make_home, questions, saved_in, session_of
from tests.server import ScriptedServer
from tests.system.program import Program

OLD = completed(("你好，我是张三", "你好，张三 😀"), ("我叫什么名字？", "你叫张三。"))
OTHER = completed(("Name a colour.", "Blue."))
READERS = [
    ["show"],
    ["search", "a"],
    ["verify"],
    ["export"],
    ["recover"],
    ["forget", "1"],
    ["show", "--json"],
    ["recover", "--dry-run"],
]


def test_two_conversations_are_kept_apart(mino: Program, server: ScriptedServer) -> None:
    for number in range(2):
        for name in ("花园 🌷", "kitchen"):
            assert mino.run("ask", "--session", name, f"{name} {number}").status == 0
    assert mino.run("ask", "unnamed").status == 0
    assert {name: questions(content) for name, content in saved_in(mino.home).items()} == {
        "花园 🌷": ["花园 🌷 0", "花园 🌷 1"],
        "kitchen": ["kitchen 0", "kitchen 1"],
    }
    assert questions(session_of(mino.home)) == ["unnamed"]
    sent = [[item["content"][0]["text"] for item in request.json["input"]] for request in server.requests]
    assert sent[2] == ["花园 🌷 0", "巴黎 🗼", "花园 🌷 1"] and sent[4] == ["unnamed"]
    assert {each.stat().st_mode & 0o777 for each in (mino.home / "saved").iterdir()} == {0o600}


@pytest.mark.parametrize(
    "words", [["--session", "a", "ask", "q"], ["ask", "q", "--session=a"], ["ask", "--session", "a", "q"]]
)
def test_the_option_stands_anywhere_and_beats_the_variable(
    mino: Program, server: ScriptedServer, words: list[str]
) -> None:
    assert mino.run(*words, env={"MINO_SESSION": "b"}).status == 0
    assert mino.run("ask", "r", "--json", env={"MINO_SESSION": "b"}).json["session"] == "b"
    assert mino.run("ask", "s", "--json", env={"MINO_SESSION": ""}).json["session"] is None
    assert {name: questions(content) for name, content in saved_in(mino.home).items()} == {"a": ["q"], "b": ["r"]}


def test_the_option_beats_what_is_current(mino: Program, server: ScriptedServer) -> None:
    make_home(mino.home, OLD, other=OTHER)
    mino.run("session", "open", "other")
    assert mino.run("ask", "q", "--json").json["session"] == "other"
    assert "我叫什么名字？" not in mino.run("history", "show").out
    assert mino.run("ask", "q", "--json", "--session", "third").json["session"] == "third"
    assert len(questions(saved_in(mino.home)["other"])) == 2
    assert (mino.home / "current").read_text() == "other\n"


def test_every_history_command_means_the_one_that_is_named(mino: Program) -> None:
    make_home(mino.home, OLD, 颜色=OTHER)
    path = mino.home / "saved" / "颜色.jsonl"
    for words, shown in (
        (["show"], "> Name a colour.\n\nBlue.\n"),
        (["show", "--context"], '"Name a colour."'),
        (["search", "colour"], "Name a colour.\n"),
        (["verify"], f"{path}: clean: 3 records"),
        (["export", "--format", "text"], "You> Name a colour.\n"),
        (["recover"], f"{path}: nothing to do\n"),
        (["forget", "1", "--dry-run"], f"{path}:1-3: would remove turn 1 "),
        (["forget", "--last"], f"{path}:1-3: removed turn 1 "),
    ):
        for done in (
            mino.run("history", *words, "--session", "颜色"),
            mino.run("history", *words, env={"MINO_SESSION": "颜色"}) if words[-1] != "--last" else None,
        ):
            if done:
                assert (done.status, shown in done.out, "张三" in done.out) == (0, True, False), words
    assert (session_of(mino.home), saved_in(mino.home)) == (OLD, {"颜色": b""})


@pytest.mark.parametrize("words", READERS)
def test_what_reads_makes_nothing(mino: Program, words: list[str]) -> None:
    home = make_home(mino.home, OLD)
    done = mino.run("history", *words, "--session", "没有")
    assert (done.status, done.out) == (66, "")
    assert done.err == "mino: there is no conversation '没有'\nhint: mino session list\n"
    assert [each.name for each in home.iterdir()] == ["sessions"]


@pytest.mark.parametrize("name", ["", ".x", "-x", "a/b", "a\nb", "x" * 201, "a-recovery-20260101T000000Z-01234567"])
@pytest.mark.parametrize("words", [["ask", "q"], ["history", "show"], ["chat"]])
def test_what_is_no_name_is_refused_everywhere(mino: Program, words: list[str], name: str) -> None:
    done = mino.run(*words, f"--session={name}")
    assert done.status == 2 and "cannot be the name of a conversation" in done.err
    assert not mino.home.exists()


@pytest.mark.parametrize("words", [["verify", "FILE"], ["recover", "FILE"]])
def test_a_file_and_a_conversation_are_two_answers(mino: Program, tmp_path: Path, words: list[str]) -> None:
    make_home(mino.home, OLD, a=OTHER)
    file = homes.write(tmp_path / "file.jsonl", OTHER)
    words = ["history", *(str(file) if word == "FILE" else word for word in words)]
    both = mino.run(*words, "--session", "a")
    assert (both.status, both.out) == (2, "") and "give one of them" in both.err
    assert mino.run(*words, env={"MINO_SESSION": "没有"}).status == 0  # a variable is no mistake beside a FILE


def test_no_history_uses_none(mino: Program, server: ScriptedServer) -> None:
    both = mino.run("ask", "q", "--no-history", "--session", "a")
    assert both.status == 2 and "give one of them" in both.err
    answer = mino.run("ask", "q", "--no-history", "--json", env={"MINO_SESSION": "a"})
    assert (answer.status, answer.json["session"]) == (0, None)
    assert not mino.home.exists()


@pytest.mark.parametrize(
    ("words", "says"), [(["new"], True), (["load", "a"], True), (["open"], True), (["list"], False)]
)
def test_session_commands_do_not_use_the_variable_and_say_so(mino: Program, words: list[str], says: bool) -> None:
    make_home(mino.home, OLD, a=OTHER)
    done = mino.run("session", *words, env={"MINO_SESSION": "a b"})
    assert done.status == 0
    assert ("mino: MINO_SESSION='a b' still decides in this shell\nhint: unset MINO_SESSION\n" in done.err) is says
    assert "a b" not in saved_in(mino.home)


@pytest.mark.parametrize(
    "words",
    ["list", "new", "open", "open a", "save x", "load a", "rename a b", "delete a", "clean", "import x f --from json"],
)
def test_session_commands_refuse_the_option_wherever_it_stands(mino: Program, words: str) -> None:
    make_home(mino.home, OLD, a=OTHER)
    before = sorted(mino.home.rglob("*"))
    for option in (["--session", "a", "session"], ["session", "--session", "a"], ["session"]):
        after = [] if "--session" in option else ["--session", "a"]
        done = mino.run(*option, *words.split(), *after)
        assert (done.status, "--session" in done.err) == (2, True), option
    assert sorted(mino.home.rglob("*")) == before


@pytest.mark.parametrize("broken", ["seq-gap", "unknown-type"])
def test_a_damaged_one_disturbs_no_other(mino: Program, server: ScriptedServer, broken: str) -> None:
    damaged = homes.case(broken)
    make_home(mino.home, OLD, broken=damaged, other=OTHER)
    for words in (["ask", "q"], ["ask", "q", "--session", "other"], ["history", "verify", "--session", "other"]):
        done = mino.run(*words)
        assert (done.status, done.err) == (0, ""), words
    for words in (["ask", "q"], ["ask", "q", "--dry-run"], ["chat"], ["history", "show"], ["history", "verify"]):
        assert mino.run(*words, "--session", "broken").status == 65, words
    found = mino.run("history", "search", "--all", "q")
    assert found.status == 65 and [line.split()[0] for line in found.out.splitlines()] == ["-", "other"]
    states = [json.loads(line) for line in mino.run("session", "list", "--json").out.splitlines()]
    assert {each["name"]: each["state"] for each in states} == {None: "clean", "other": "clean", "broken": "invalid"}
    assert mino.run("history", "forget", "--last", "--session", "other").status == 0
    assert saved_in(mino.home) == {"broken": damaged, "other": OTHER}


@pytest.mark.parametrize("name", ["", "计划"])
def test_a_conversation_in_use_stops_nobody_else(mino: Program, server: ScriptedServer, name: str) -> None:
    home = make_home(mino.home, OLD, 计划=OTHER)
    lock = home / "saved" / f"{name}.lock" if name else home / "sessions.lock"
    ask = ["ask", "q", *(["--session", name] if name else [])]
    with closing(lock_exclusive(str(lock), 0)):
        busy = mino.run(*ask)
        assert busy.status == 75
        what = f"the conversation '{name}'" if name else "the session"
        assert busy.err.startswith(f"mino: {what} is in use by ")
        hint = "hint: wait for it with --wait SECONDS, or use another conversation with --session NAME\n"
        assert busy.err.endswith(hint)
        assert mino.run("ask", "q", "--session", "another").status == 0
        assert mino.run("history", "forget", "--last", "--session", "another").status == 0
        assert mino.run("history", "show", *ask[2:]).status == 0
    assert mino.run(*ask).status == 0


@pytest.mark.parametrize("case", ["torn-40-bytes", "open-question", "seq-gap"])
def test_a_named_conversation_is_recovered_and_salvaged_like_the_unnamed_one(
    mino: Program, server: ScriptedServer, case: str
) -> None:
    damaged = homes.case(case)
    make_home(mino.home, OLD, a=damaged)
    if homes.state_of(damaged) == "invalid":
        refused = mino.run("ask", "q", "--session", "a")
        assert refused.status == 65 and saved_in(mino.home) == {"a": damaged}
        hint = refused.err.splitlines()[-1]
        assert hint == f"hint: mino history recover --salvage --dry-run '{mino.home}/saved/a.jsonl'"
        assert mino.run("history", "recover", "--salvage", "--session", "a").status == 0
    answer = mino.run("ask", "q", "--session", "a")
    assert answer.status == 0
    assert questions(saved_in(mino.home)["a"])[-1] == "q"
    copies = [content for name, content in saved_in(mino.home).items() if name.startswith("a-recovery-")]
    assert copies == ([] if case == "open-question" else [damaged])
    assert session_of(mino.home) == OLD


def test_the_second_seed_with_session_alone(mino: Program, server: ScriptedServer) -> None:
    """Create, ask, resume by id, list with titles, delete."""
    first, second = "0193a0b1c2d37000800000000000000b", "会话二"
    assert mino.run("ask", "--session", first, "你好，我是张三").status == 0
    assert mino.run("ask", "--session", second, "What is a session?").status == 0
    assert mino.run("ask", "--session", first, "我叫什么名字？").status == 0
    listed = [json.loads(line) for line in mino.run("session", "list", "--json").out.splitlines()]
    assert [(each["name"], each["turns"], each["title"]) for each in listed] == [
        (first, 2, "你好，我是张三"),
        (second, 1, "What is a session?"),
    ]
    assert mino.run("session", "delete", first).status == 0
    assert mino.run("history", "show", "--session", first).status == 66
    assert questions(saved_in(mino.home)[second]) == ["What is a session?"]
