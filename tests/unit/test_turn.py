"""One turn: what is on disk when the server is asked, and what of its end is saved, shown and raised."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from mino import turn
from mino.errors import (
    AnswerIncomplete,
    Interrupted,
    InvalidData,
    MinoError,
    ReaderGone,
    Reply,
    ServiceFailed,
    StorageFailed,
)
from mino.journal.order import Turn
from mino.responses.answer import Answer
from mino.responses.client import Client, Display
from mino.responses.request import Request
from mino.sessions.conversation import Conversation, open_conversation
from mino.terminal import output
from mino.terminal.output import AnswerStream
from mino.turn import View
from tests.homes import completed, open_home, refuse_telling, session_path
from tests.unit.journal.sample import ITEM, load

Output = pytest.CaptureFixture[str]
QUESTION = "法国的首都是哪里？ 🗼"


class Scripted(Client):
    """A client that asks nobody: it does what a test says in the middle of a turn."""

    def __init__(self, act: Callable[[Display | None], Answer]) -> None:
        self.act = act
        self.asked: list[str] = []

    def ask(self, request: Request, display: Display | None) -> Answer:
        self.asked.append(request.question)
        return self.act(display)


def answer(
    text: str, status: Literal["completed", "incomplete"] = "completed", reason: str | None = None, *items: Any
) -> Answer:
    return Answer(status, reason, text, False, "m", "resp_1", None, list(items))


def saying(said: Answer, *pieces: str) -> Callable[[Display | None], Answer]:
    """Shows the pieces, if they are to be shown as they arrive, and gives the whole answer."""

    def act(display: Display | None) -> Answer:
        for piece in pieces or (said.text,):
            if display:
                display.show(piece)
        return said

    return act


def failing(failure: BaseException, *pieces: str) -> Callable[[Display | None], Answer]:
    """Shows the pieces and then fails."""

    def act(display: Display | None) -> Answer:
        for piece in pieces:
            if display:
                display.show(piece)
        raise failure

    return act


class Whole(View):
    """Shows nothing before the end, and then what `format_whole` makes of the answer."""

    as_it_arrives = False

    def __init__(self, format_whole: Callable[[str | None, Answer], str] = lambda turn_id, said: said.text) -> None:
        super().__init__(AnswerStream())
        self._format_whole = format_whole

    def finish(self, turn_id: str | None, answer: Answer) -> None:
        self.show(self._format_whole(turn_id, answer))

    def fail(self, turn_id: str | None, failure: MinoError, reply: Reply) -> None:
        self.show(f"{turn_id}: {failure.message} ({reply.http_status}, {reply.text})")


def view(whole: bool) -> View:
    return Whole() if whole else View(AnswerStream())


@pytest.fixture
def conversation(tmp_path: Path) -> Iterator[Conversation]:
    """A conversation that has one turn already."""
    home = open_home(tmp_path / "home", completed(("一", "one")))
    with open_conversation(home, None, 0, refuse_telling) as opened:
        assert opened.journal.path == str(session_path(home))
        yield opened


def request(question: str = QUESTION) -> Request:
    return Request("m", None, [], question)


def turns_on_disk(conversation: Conversation) -> list[Turn]:
    """The turns in the file beside the first one; what is there must be whole."""
    turns, report = load(Path(conversation.journal.path).read_bytes())
    assert {finding.code for finding in report.findings} <= {"open-turn"}
    return turns[1:]


def statuses(conversation: Conversation) -> list[str]:
    return [each.status for each in turns_on_disk(conversation)]


def test_the_question_is_on_disk_before_it_is_sent_and_the_answer_after_it_has_come(
    conversation: Conversation, capfd: Output
) -> None:
    seen: list[str] = []

    def act(display: Display | None) -> Answer:
        [asked] = turns_on_disk(conversation)
        assert (asked.user, asked.status, asked.assistant) == (QUESTION, "open", None)
        assert display
        for piece in ("巴黎 ", "🗼"):
            display.show(piece)
            seen.append(capfd.readouterr().out)  # as it arrives
        assert statuses(conversation) == ["open"]
        return answer("巴黎 🗼", "completed", None, ITEM, {"no": "type"}, {"type": "m", "n": 10**5000})

    client = Scripted(act)
    turn.run(conversation, client, request(), View(AnswerStream()))
    assert client.asked == [QUESTION] and seen == ["巴黎 ", "🗼"]
    assert capfd.readouterr() == ("\n", "")
    [done] = turns_on_disk(conversation)
    # Of the items those are kept that a record can hold.
    assert (done.user, done.assistant, done.output, done.status) == (QUESTION, "巴黎 🗼", [ITEM], "completed")
    assert [each.user for each in conversation.context] == ["一", QUESTION] and conversation.turns == 2


def test_an_answer_without_items_has_no_output(conversation: Conversation) -> None:
    turn.run(conversation, Scripted(saying(answer("Paris"))), request(), View(AnswerStream()))
    [done] = turns_on_disk(conversation)
    assert (done.assistant, done.output) == ("Paris", None)


def test_one_turn_follows_another(conversation: Conversation, capfd: Output) -> None:
    for question, text in (("二", "two"), ("三", "three")):
        turn.run(conversation, Scripted(saying(answer(text))), request(question), View(AnswerStream("Assistant> ")))
    assert capfd.readouterr().out == "\nAssistant> two\n\nAssistant> three\n"
    assert [each.user for each in conversation.context] == ["一", "二", "三"]
    first, second = turns_on_disk(conversation)
    assert (first.number, second.number) == (2, 3) and first.turn_id < second.turn_id


@pytest.mark.parametrize("reason", ["max_output_tokens", "内容过滤", None])
@pytest.mark.parametrize("whole", [False, True])
def test_an_answer_that_was_cut_short_is_shown_and_its_turn_has_failed(
    conversation: Conversation, capfd: Output, reason: str | None, whole: bool
) -> None:
    client = Scripted(saying(answer("巴", "incomplete", reason)))
    with pytest.raises(AnswerIncomplete, match=reason or "no reason") as caught:
        turn.run(conversation, client, request(), view(whole))
    assert caught.value.status == 3
    assert capfd.readouterr() == ("巴\n", "")
    assert statuses(conversation) == ["failed"]
    assert len(conversation.context) == 1 and conversation.turns == 2


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (ServiceFailed("the answer broke off: 连接断了", "ask again"), "failed"),
        (ZeroDivisionError("a defect"), "failed"),
        (Interrupted(signal.SIGINT), "cancelled"),
        (Interrupted(signal.SIGTERM), "cancelled"),
        (ReaderGone(), "cancelled"),
    ],
)
def test_a_failure_is_raised_when_the_end_of_the_turn_is_saved(
    conversation: Conversation, capfd: Output, failure: BaseException, status: str
) -> None:
    with pytest.raises(type(failure)) as caught:
        turn.run(conversation, Scripted(failing(failure, "巴", "黎")), request(), View(AnswerStream()))
    assert caught.value is failure
    assert capfd.readouterr() == ("巴黎\n", "")
    [done] = turns_on_disk(conversation)
    assert (done.user, done.assistant, done.status) == (QUESTION, None, status)
    assert len(conversation.context) == 1 and conversation.turns == 2
    turn.run(conversation, Scripted(saying(answer("还在"))), request("still there?"), View(AnswerStream()))
    assert statuses(conversation) == [status, "completed"]


def test_a_whole_answer_is_shown_at_its_end_with_the_id_of_its_turn(conversation: Conversation, capfd: Output) -> None:
    ids: list[str | None] = []

    def act(display: Display | None) -> Answer:
        assert display is None
        return answer("巴黎")

    def format_whole(turn_id: str | None, said: Answer) -> str:
        assert statuses(conversation) == ["completed"]
        ids.append(turn_id)
        return f"<{said.text}>\n"

    turn.run(conversation, Scripted(act), request(), Whole(format_whole))
    assert capfd.readouterr() == ("<巴黎>\n", "")
    assert ids == [each.turn_id for each in turns_on_disk(conversation)]


def test_a_failure_of_the_service_is_shown_when_the_end_of_the_turn_is_saved(
    conversation: Conversation, capfd: Output
) -> None:
    failure = ServiceFailed("断了")
    failure.reply = Reply(503, None, "half")
    with pytest.raises(ServiceFailed):
        turn.run(conversation, Scripted(failing(failure)), request(), Whole())
    [done] = turns_on_disk(conversation)
    assert done.status == "failed"
    assert capfd.readouterr().out == f"{done.turn_id}: 断了 (503, half)\n"
    with pytest.raises(ServiceFailed):  # not one of Mino's own
        turn.run(conversation, Scripted(failing(ServiceFailed("ours"))), request(), Whole())
    assert capfd.readouterr().out == ""


def test_a_flaw_of_a_saved_answer_is_raised_after_all_else(conversation: Conversation, capfd: Output) -> None:
    class Flawed(View):
        def finish(self, turn_id: str | None, answer: Answer) -> None:
            assert statuses(conversation)[-1:] == ["completed" if answer.status == "completed" else "failed"]
            self.flaw = InvalidData("not what was asked for")

    with pytest.raises(InvalidData, match="not what"):
        turn.run(conversation, Scripted(saying(answer("巴黎"))), request(), Flawed(AnswerStream()))
    with pytest.raises(AnswerIncomplete):
        turn.run(conversation, Scripted(saying(answer("巴", "incomplete"))), request(), Flawed(AnswerStream()))
    assert capfd.readouterr().out == "巴黎\n巴\n"


def test_without_a_conversation_nothing_is_saved(capfd: Output) -> None:
    turn.run(None, Scripted(saying(answer("巴黎"), "巴", "黎")), request(), View(AnswerStream()))
    turn.run(None, Scripted(saying(answer("x"))), request(), Whole(lambda turn_id, said: f"{turn_id}\n"))
    assert capfd.readouterr() == ("巴黎\nNone\n", "")
    failures: list[BaseException] = [ServiceFailed("失败"), Interrupted(signal.SIGHUP)]
    for failure in failures:
        with pytest.raises(type(failure)):
            turn.run(None, Scripted(failing(failure)), request(), View(AnswerStream()))
    with pytest.raises(AnswerIncomplete):
        turn.run(None, Scripted(saying(answer("x", "incomplete"))), request(), View(AnswerStream()))


def test_a_question_that_cannot_be_saved_is_not_sent(conversation: Conversation, capfd: Output) -> None:
    os.unlink(conversation.journal.path)
    client = Scripted(saying(answer("never")))
    with pytest.raises(StorageFailed, match=r"is gone: .*: the question was not sent$"):
        turn.run(conversation, client, request(), View(AnswerStream()))
    assert client.asked == [] and capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("whole", "known"), [(False, "the answer was shown and may not be saved"), (True, "the answer may not be saved")]
)
def test_an_answer_that_cannot_be_saved_does_not_count(
    conversation: Conversation, capfd: Output, whole: bool, known: str
) -> None:
    def act(display: Display | None) -> Answer:
        os.unlink(conversation.journal.path)
        return saying(answer("巴黎"))(display)

    with pytest.raises(StorageFailed, match=f": {known}$") as caught:
        turn.run(conversation, Scripted(act), request(), view(whole))
    assert caught.value.hint == "mino history verify"
    assert capfd.readouterr() == ("" if whole else "巴黎\n", "")
    assert len(conversation.context) == 1 and conversation.turns == 1


@pytest.mark.parametrize(
    ("failure", "status", "told"),
    [
        (ServiceFailed("the answer broke off: 连接断了"), "failed", "mino: the answer broke off: 连接断了\n"),
        (Interrupted(signal.SIGINT), "cancelled", ""),
        (None, "failed", ""),
    ],
)
def test_that_the_end_cannot_be_saved_outranks_what_ended_the_turn(
    conversation: Conversation, capfd: Output, failure: BaseException | None, status: str, told: str
) -> None:
    def act(display: Display | None) -> Answer:
        os.unlink(conversation.journal.path)
        if failure:
            raise failure
        return answer("巴", "incomplete")

    with pytest.raises(StorageFailed, match=f": the end of the {status} turn may not be saved$") as caught:
        turn.run(conversation, Scripted(act), request(), View(AnswerStream()))
    assert caught.value.hint == "mino history verify"
    assert capfd.readouterr() == ("", told)


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """stdout cannot be written."""
    fd = os.open(os.devnull, os.O_RDONLY)
    monkeypatch.setattr(output, "STDOUT", fd)
    yield
    os.close(fd)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.usefixtures("unwritable")
def test_a_stdout_that_cannot_be_written_is_told_when_the_turn_is_saved(
    conversation: Conversation, whole: bool
) -> None:
    client = Scripted(saying(answer("巴黎"), "巴", "黎"))
    with pytest.raises(StorageFailed, match="cannot write to stdout") as caught:
        turn.run(conversation, client, request(), view(whole))
    [done] = turns_on_disk(conversation)
    assert (done.assistant, done.status) == ("巴黎", "completed")
    assert caught.value.hint == f"mino history show --turn {done.turn_id}"


@pytest.mark.usefixtures("unwritable")
def test_without_a_conversation_there_is_no_turn_to_show() -> None:
    with pytest.raises(StorageFailed, match="cannot write to stdout") as caught:
        turn.run(None, Scripted(saying(answer("巴黎"))), request(), View(AnswerStream()))
    assert caught.value.hint == ""


@pytest.mark.usefixtures("unwritable")
def test_who_cannot_show_that_it_waits_does_not_ask(conversation: Conversation) -> None:
    client = Scripted(saying(answer("never")))
    with pytest.raises(StorageFailed, match="cannot write to stdout"):
        turn.run(conversation, client, request(), View(AnswerStream("Assistant> ")))
    assert client.asked == [] and turns_on_disk(conversation) == []
