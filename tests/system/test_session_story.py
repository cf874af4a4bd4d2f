"""The stories of keeping and changing conversations, told with real questions to a real server."""

from tests.homes import questions, saved_in
from tests.server import ScriptedServer
from tests.system.program import Program, sent_texts


def ask(mino: Program, question: str) -> None:
    assert mino.run("ask", question).status == 0


def test_several_conversations_each_resumed_by_its_name(mino: Program, server: ScriptedServer) -> None:
    assert mino.run("session", "open", "张三").status == 0
    ask(mino, "你好，我是张三")
    assert mino.run("session", "open", "colours").status == 0
    ask(mino, "Name a colour. 🎨")
    assert mino.run("session", "open", "张三").status == 0
    ask(mino, "我叫什么名字？")

    asked = [sent_texts(request.json) for request in server.requests]
    assert asked[1] == ["Name a colour. 🎨"]
    assert asked[2] == ["你好，我是张三", "巴黎 🗼", "我叫什么名字？"]
    listed = mino.run("session", "list").out
    assert listed.splitlines()[0].startswith("* ")
    assert "    2  张三     你好，我是张三\n" in listed
    assert "    1  colours  Name a colour. 🎨\n" in listed
    assert mino.run("session", "delete", "colours").status == 0
    assert "colours" not in mino.run("session", "list").out
    assert mino.run("session", "load", "colours").status == 66


def test_a_checkpoint_to_come_back_to_when_the_conversation_drifts(mino: Program, server: ScriptedServer) -> None:
    ask(mino, "task one")
    assert mino.run("session", "save", "mytask").status == 0
    ask(mino, "a wrong turn")
    assert mino.run("session", "load", "mytask").status == 0
    ask(mino, "a better turn")
    assert sent_texts(server.requests[2].json) == ["task one", "巴黎 🗼", "a better turn"]

    assert mino.run("session", "new").status == 0
    ask(mino, "from nothing")
    assert sent_texts(server.requests[3].json) == ["from nothing"]

    kept = [questions(content) for content in saved_in(mino.home).values()]
    assert sorted(kept) == [["task one"], ["task one", "a better turn"], ["task one", "a wrong turn"]]
