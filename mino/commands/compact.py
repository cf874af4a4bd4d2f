"""`mino history compact`, and `/compact` in chat: a summary by the model takes the place of the earlier turns."""

from collections.abc import Iterator, Mapping

from mino import turn
from mino.home import Home
from mino.model import Model, open_model
from mino.responses.request import Request
from mino.sessions.compact import KEPT_TURNS, Compacted, Part, choose, is_summary
from mino.sessions.conversation import Conversation, open_conversation
from mino.sessions.place import find
from mino.settings import Settings
from mino.terminal import output
from mino.text import Tell, count

TASK = """\
Sum up the conversation above. Your summary takes the place of these messages: whoever continues the conversation sees \
the summary, and not the messages.

Keep everything that a later question may rest on: facts, names, numbers, dates, file names and links; what was \
decided, and why; what the user wants, prefers or forbids; open questions and unfinished work. Repeat word for word \
what must not change: code, commands, and quoted text that is still needed. If the conversation begins with a summary \
of earlier turns, keep what it says too. Leave out greetings, and what was replaced by something later. Add nothing new.

Write in the language of the conversation. Answer with the summary alone; do not continue the conversation."""


def compact(home: Home, session: str | None, settings: Settings, environ: Mapping[str, str], keep: int | None) -> None:
    """Replace all completed turns but the last `keep` (None: KEPT_TURNS) by a summary, and report what was done.

    Raises a MinoError with the exit status of the failure (mino(1), EXIT STATUS); the conversation is then as it was.
    """
    keep = KEPT_TURNS if keep is None else keep
    if find(home, session, output.notice)[1] is None:
        output.notice("there is no conversation yet")
        return
    with open_conversation(home, session, settings.wait, output.notice, keep=0) as conversation:
        part = choose(conversation, keep)
        if part is None:  # before a key is looked for, or a model loaded
            output.notice(format_nothing(keep))
            return
        smaller = smaller_part(part)
        less = "-m NAME asks a model that takes more" if smaller is None else f"--keep {smaller} sums up fewer turns"
        with open_model(settings, environ) as model:
            run(conversation, model, part, less, output.notice)


def run(conversation: Conversation, model: Model, part: Part, send_less: str, tell: Tell) -> None:
    """Ask `model` for a summary of `part`, put it there, and `tell` what was done. Raises as `turn.sum_up`.

    The request has no instructions: a summary should not be written in the role that SOUL.md describes.
    """
    if output.is_terminal(output.STDERR):
        output.notice(f"asking {model.name} to sum up {count(len(part.turns), 'turn')}")
    request = Request(model.name, None, part.turns, TASK, send_less, model.options)
    model.waiting.begin()
    try:
        turn.sum_up(conversation, part, model.client, request, lambda done: _tell_all(format_compacted(done), tell))
    finally:
        model.waiting.end()


def _tell_all(sentences: Iterator[str], tell: Tell) -> None:
    for sentence in sentences:
        tell(sentence)


def smaller_part(part: Part) -> int | None:
    """How many turns to keep, so that only half of `part` is summed up, if it is too much; None if that is nothing."""
    half = len(part.turns) // 2
    rest = part.turns[: len(part.turns) - half]
    return None if not half or (len(rest) == 1 and is_summary(rest[0].user)) else part.kept + half


def format_nothing(keep: int) -> str:
    """Why nothing was done."""
    where = f" before the last {count(keep, 'completed turn')}" if keep else ""
    return f"there is nothing to sum up{where}; nothing was sent"


def format_compacted(done: Compacted) -> Iterator[str]:
    """What was done, the saved copy first."""
    yield f"the whole conversation is {'' if done.saved.is_new else 'already '}saved as '{done.saved.name}'"
    turns = f"{count(done.turns, 'turn')} became a summary, {done.kept} {'follows' if done.kept == 1 else 'follow'}"
    yield f"{turns}: {done.after} bytes instead of {done.before}"
