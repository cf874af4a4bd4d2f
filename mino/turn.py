"""One turn, from the question to the saved end: the place where disk and wire meet (spec section 7).

The question is on disk before the first byte of the request; the answer counts only when it is on disk. Signals
wait while something is saved, and interrupt at once while the wire is read.
"""

from mino import signals, terminal
from mino.conversation import Conversation
from mino.errors import AnswerIncomplete, Interrupted, MinoError, ReaderGone, StorageFailed
from mino.journal.record import EndStatus, new_id
from mino.responses.answer import Answer
from mino.responses.client import Client, Show
from mino.responses.request import Request


def run(conversation: Conversation | None, client: Client, request: Request, show: Show | None) -> tuple[str, Answer]:
    """Ask `request` and save what becomes of it in `conversation` (None: nowhere); the turn's id and the answer.

    `show` gets the text as it arrives. An answer that is `incomplete` was shown but its turn ends as failed. Raises
    the failure of the wire when the turn's end is saved, Interrupted and ReaderGone when it is saved as cancelled, and
    StorageFailed, which outranks them all, when something could not be saved.
    """
    turn_id = new_id()
    with signals.held():
        _begin(conversation, turn_id, request.question)
        try:
            with signals.delivered():
                answer = client.ask(request, show)
        except (Interrupted, ReaderGone):
            _end(conversation, turn_id, "cancelled")
            raise
        except BaseException as failure:
            _end(conversation, turn_id, "failed", failure)
            raise
        if answer.status == "completed":
            _complete(conversation, turn_id, request.question, answer, "was shown and " if show else "")
        else:
            _end(conversation, turn_id, "failed")
    return turn_id, answer


def refuse_incomplete(answer: Answer) -> None:
    """Raise AnswerIncomplete where the service cut `answer` short: what came was shown, and its turn has failed."""
    if answer.status == "incomplete":
        raise AnswerIncomplete(f"the service cut the answer short: {answer.reason or 'it gave no reason'}")


def _begin(conversation: Conversation | None, turn_id: str, question: str) -> None:
    if not conversation:
        return
    try:
        conversation.begin(turn_id, question)
    except StorageFailed as failure:
        raise StorageFailed(f"{failure.message}: the question was not sent", failure.hint) from None


def _complete(conversation: Conversation | None, turn_id: str, question: str, answer: Answer, known: str) -> None:
    if not conversation:
        return
    try:
        conversation.complete(turn_id, question, answer.text, answer.output)
    except StorageFailed as failure:
        raise StorageFailed(f"{failure.message}: the answer {known}may not be saved", "mino history verify") from None


def _end(
    conversation: Conversation | None, turn_id: str, status: EndStatus, cause: BaseException | None = None
) -> None:
    if not conversation:
        return
    try:
        conversation.end(turn_id, status)
    except StorageFailed as failure:
        if isinstance(cause, MinoError):
            terminal.notice(cause.message)  # it happened first, and the storage failure takes its place
        raise StorageFailed(
            f"{failure.message}: the end of the {status} turn may not be saved", "mino history verify"
        ) from None
