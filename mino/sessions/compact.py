"""The beginning of a conversation, replaced by a summary of it in one rename (mino-history(1), `compact`)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mino.errors import StorageFailed
from mino.journal import scan
from mino.journal.file import Journal
from mino.journal.findings import BadLine, refuse_invalid
from mino.journal.ids import new_id
from mino.journal.loader import Loading
from mino.journal.order import Turn
from mino.journal.record import assistant_message, encode, turn_end, user_message
from mino.sessions import switch
from mino.sessions.conversation import Conversation
from mino.sessions.listing import make_title
from mino.sessions.saved import Saved

KEPT_TURNS = 4  # completed turns that stay as they are, unless a person wants another number

# The question of a summary. The title comes first, because the list of the conversations shows the beginning; the model
# and a reader of the file learn from the rest what the answer is.
_BEGINNING = "Summary: "
_END = "\n\nThe answer is a summary of the earlier turns of this conversation, and takes their place."


class Part(NamedTuple):
    """The beginning of a conversation that a summary can replace: its completed turns, and its length in bytes.

    `kept` is the number of the completed turns that follow it.
    """

    turns: Sequence[Turn]
    size: int
    kept: int


class Compacted(NamedTuple):
    """How many turns a summary replaced, how many completed ones follow it, the file's bytes, and the saved copy."""

    turns: int
    kept: int
    before: int
    after: int
    saved: Saved


def choose(conversation: Conversation, keep: int) -> Part | None:
    """All completed turns but the last `keep`, with what lies between them; None if there is nothing to sum up.

    An earlier summary alone is nothing: a summary of it would only lose something. Raises InvalidData if another
    process damaged the file after it was loaded.
    """
    journal = conversation.journal
    loading = Loading(journal.chunks())
    turns = list(loading)
    refuse_invalid(journal.path, loading.report)
    completed = [index for index, turn in enumerate(turns) if turn.status == "completed"]
    chosen = completed[: max(0, len(completed) - keep)]
    if not chosen or (len(chosen) == 1 and is_summary(turns[chosen[0]].user)):
        return None
    following = turns[chosen[-1] + 1 :]
    size = following[0].byte if following else journal.size
    return Part([turns[index] for index in chosen], size, len(completed) - len(chosen))


def is_summary(question: str) -> bool:
    """Whether a turn with this `question` holds a summary."""
    return question.startswith(_BEGINNING) and question.endswith(_END)


def summary_question(first: str) -> str:
    """The question of a turn that sums up turns of which the `first` question is this."""
    return first if is_summary(first) else _BEGINNING + make_title(first) + _END


def replace(conversation: Conversation, part: Part, summary: str) -> Compacted:
    """Save the conversation, and put a turn with `summary` in the place of `part`; the turns after it stay.

    Raises CannotCreate, StorageFailed, AccessRefused; before the rename everything is as it was.
    """
    before = conversation.journal.size
    saved = switch.keep(conversation)
    assert saved  # it has turns
    switch.replace(conversation, _records(conversation.journal, part, summary))
    return Compacted(len(part.turns), part.kept, before, conversation.journal.size, saved)


def _records(journal: Journal, part: Part, summary: str) -> Iterator[bytes]:
    turn_id = new_id()
    yield encode(user_message(1, turn_id, summary_question(part.turns[0].user)))
    # Its text alone: its items would bring the reasoning about the turns that are gone into every later request.
    yield encode(assistant_message(2, turn_id, summary, None))
    yield encode(turn_end(3, turn_id, "completed"))
    for number, _, record in scan.number(scan.split(_rest(journal, part.size), hold=True)):
        if isinstance(record, BadLine):
            raise StorageFailed(
                f"the session file '{journal.path}' was changed by another process", "mino history verify"
            )
        record["seq"] = number + 3
        yield encode(record)


def _rest(journal: Journal, start: int) -> Iterator[bytes]:
    skip = start
    for chunk in journal.chunks():
        yield chunk[skip:]
        skip = max(0, skip - len(chunk))
