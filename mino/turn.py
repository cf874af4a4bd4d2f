"""One turn, from the question to the saved end: disk and wire meet here, and nowhere else (mino-record(5), GUARANTEES).

The question is on disk before the first byte of the request is sent; the answer counts only when it is on disk. Signals
wait while something is saved, and interrupt at once while the wire is read.
"""

from collections.abc import Callable

from mino import signals
from mino.errors import AnswerIncomplete, Interrupted, MinoError, ReaderGone, ServiceFailed, StorageFailed
from mino.journal.ids import new_id
from mino.journal.record import EndStatus, Record, accepted_items, assistant_message, turn_end, user_message
from mino.responses.answer import Answer
from mino.responses.client import Client, Show
from mino.responses.request import Request
from mino.sessions import compact
from mino.sessions.compact import Compacted, Part
from mino.sessions.conversation import Conversation
from mino.terminal import output
from mino.text import one_line

FormatWhole = Callable[[str | None, Answer], str]
"""The turn's id (None: it is not saved) and the whole answer → the text to show."""


def run(
    conversation: Conversation | None,
    client: Client,
    request: Request,
    stream: output.AnswerStream,
    format_whole: FormatWhole | None = None,
) -> None:
    """Ask `request`, show the answer on `stream`, and save the outcome in `conversation` (None: nowhere).

    The text is shown as it arrives, or with `format_whole` its text of the whole answer at the end. Raises the failure
    of the wire once the turn's end is saved; Interrupted and ReaderGone once it is saved as cancelled; AnswerIncomplete
    if the service cut the answer short: the part that arrived was shown, and the turn has failed; StorageFailed, which
    outranks them all, if something could not be saved, or if stdout could not be written although the turn is saved.
    """
    turn_id = new_id()
    try:
        stream.begin()
        answer = _ask(conversation, turn_id, client, request, None if format_whole else stream.show)
    finally:
        stream.end()
    if format_whole:
        stream.show(format_whole(turn_id if conversation else None, answer))
    if stream.failure:
        hint = f"mino history show --turn {turn_id}" if conversation else ""
        raise StorageFailed(stream.failure.message, hint)
    if answer.status == "incomplete":
        raise AnswerIncomplete(f"the service cut the answer short: {answer.reason or 'no reason given'}")


def _ask(
    conversation: Conversation | None, turn_id: str, client: Client, request: Request, show: Show | None
) -> Answer:
    with signals.deferred():
        if conversation:
            question = user_message(conversation.journal.seq, turn_id, request.question)
            _save(conversation, "the question was not sent", question, hint="")
        try:
            with signals.immediate():
                answer = client.ask(request, show)
        except (Interrupted, ReaderGone):
            _end(conversation, turn_id, "cancelled")
            raise
        except BaseException as failure:
            _end(conversation, turn_id, "failed", failure)
            raise
        if answer.status == "incomplete":
            _end(conversation, turn_id, "failed")
        elif conversation:
            seq, items = conversation.journal.seq, accepted_items(answer.output) or None
            records = assistant_message(seq, turn_id, answer.text, items), turn_end(seq + 1, turn_id, "completed")
            _save(conversation, f"the answer {'was shown and ' if show else ''}may not be saved", *records)
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
