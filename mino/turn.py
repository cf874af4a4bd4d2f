"""One turn, from the question to the saved end: disk and wire meet here, and nowhere else (mino-record(5), GUARANTEES).

The question is on disk before the first byte of the request is sent; the answer counts only when it is on disk. Signals
wait while something is saved, and interrupt at once while the wire is read.
"""

from collections.abc import Callable

from mino import signals
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
from mino.journal.ids import new_id
from mino.journal.record import (
    EndStatus,
    Record,
    accepted_items,
    accepted_usage,
    assistant_message,
    turn_end,
    user_message,
)
from mino.responses.answer import Answer
from mino.responses.client import Client
from mino.responses.request import Request
from mino.sessions import compact
from mino.sessions.compact import Compacted, Part
from mino.sessions.conversation import Conversation
from mino.terminal import output
from mino.text import one_line


class View:
    """What is shown of an answer on `stream`, and when: here its text as it arrives.

    `flaw` is set by `finish` if the answer is whole, and not what was asked for.
    """

    as_it_arrives = True

    def __init__(self, stream: output.AnswerStream) -> None:
        self.stream = stream
        self.flaw: InvalidData | None = None

    def begin(self) -> None:
        """An attempt begins, and nothing of an earlier one was shown."""

    def show(self, text: str) -> bool:
        """Take a piece of the answer; whether anything of it is shown now. Raises ReaderGone."""
        self.stream.show(text)
        return bool(text)

    def finish(self, turn_id: str | None, answer: Answer) -> None:
        """Show what is left to show of the whole answer. `turn_id` is None if it is not saved. Raises ReaderGone."""

    def fail(self, turn_id: str | None, failure: MinoError, reply: Reply) -> None:
        """Show what is left to show of an answer that `failure` ended, after that `reply`. Raises ReaderGone."""


def run(conversation: Conversation | None, client: Client, request: Request, view: View) -> None:
    """Ask `request`, show the answer in `view`, and save the outcome in `conversation` (None: nowhere).

    Raises the failure of the wire once the turn's end is saved; Interrupted and ReaderGone once it is saved as
    cancelled; AnswerIncomplete if the service cut the answer short: the part that arrived was shown, and the turn has
    failed; the flaw that `view` finds in a saved answer; StorageFailed, which outranks them all, if something could not
    be saved, or if stdout could not be written although the turn is saved.
    """
    turn_id = new_id()
    saved = turn_id if conversation else None
    stream = view.stream
    try:
        stream.begin()
        answer = _ask(conversation, turn_id, client, request, view)
        view.finish(saved, answer)
    except MinoError as failure:
        if failure.reply:
            view.fail(saved, failure, failure.reply)
        raise
    finally:
        stream.end()
    if stream.failure:
        hint = f"mino history show --turn {turn_id}" if conversation else ""
        raise StorageFailed(stream.failure.message, hint)
    if answer.status == "incomplete":
        raise AnswerIncomplete(f"the service cut the answer short: {answer.reason or 'no reason given'}")
    if view.flaw:
        raise view.flaw


def _ask(conversation: Conversation | None, turn_id: str, client: Client, request: Request, view: View) -> Answer:
    with signals.deferred():
        if conversation:
            parts = request.parts if request.files else None
            question = user_message(conversation.journal.seq, turn_id, request.question, parts)
            _save(conversation, "the question was not sent", question, hint="")
        try:
            with signals.immediate():
                answer = client.ask(request, view if view.as_it_arrives else None)
        except (Interrupted, ReaderGone):
            _end(conversation, turn_id, "cancelled")
            raise
        except BaseException as failure:
            _end(conversation, turn_id, "failed", failure)
            raise
        if answer.status == "incomplete":
            _end(conversation, turn_id, "failed")
        elif conversation:
            seq, items, usage = conversation.journal.seq, accepted_items(answer.output), accepted_usage(answer.usage)
            message = assistant_message(seq, turn_id, answer.text, items or None, answer.model, usage)
            records = message, turn_end(seq + 1, turn_id, "completed")
            _save(
                conversation, f"the answer {'was shown and ' if view.as_it_arrives else ''}may not be saved", *records
            )
    return answer


def _end(
    conversation: Conversation | None, turn_id: str, status: EndStatus, cause: BaseException | None = None
) -> None:
    """Save the end of a turn without an answer."""
    if not conversation:
        return
    try:
        end = turn_end(conversation.journal.seq, turn_id, status)
        _save(conversation, f"the end of the {status} turn may not be saved", end)
    except StorageFailed:
        if isinstance(cause, MinoError):
            output.notice(cause.message)  # it happened first, and the storage failure takes its place
        raise


def _save(conversation: Conversation, known: str, *records: Record, hint: str = "mino history verify") -> None:
    """Append `records`; if that fails, `known` says what is known of the turn."""
    try:
        conversation.append(*records)
    except StorageFailed as failure:
        raise StorageFailed(f"{failure.message}: {known}", hint or failure.hint) from None


def sum_up(
    conversation: Conversation, part: Part, client: Client, request: Request, tell: Callable[[Compacted], None]
) -> None:
    """Ask `request` for a summary of `part`, put it in its place, and `tell` what was done.

    The conversation is as it was until the whole summary is here, and is saved only then, so that a request that fails
    leaves no copy. Raises the failure of the wire, Interrupted and ReaderGone; AnswerIncomplete and ServiceFailed for
    half a summary and for a refusal; and as `compact.replace`. A signal that comes while it is replaced waits.
    """
    with signals.deferred():
        with signals.immediate():
            answer = client.ask(request, None)
        as_it_was = "the conversation is as it was"
        if answer.status == "incomplete":
            reason = answer.reason or "no reason given"
            raise AnswerIncomplete(f"the service cut the summary short: {reason}; {as_it_was}", request.send_less)
        if answer.refusal:
            raise ServiceFailed(f"the model refused to sum up: '{one_line(answer.text)}'; {as_it_was}")
        tell(compact.replace(conversation, part, answer.text))
