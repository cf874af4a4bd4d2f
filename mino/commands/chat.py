"""`mino chat`: one question after another, in one conversation that is locked from the first prompt to the last."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from mino import __version__, signals, turn
from mino.attachments import Attached
from mino.commands import slash
from mino.commands.view import AskView, Wanted
from mino.context import tell_size
from mino.errors import Interrupted, MinoError, StorageFailed
from mino.home import Home
from mino.journal.questions import last_questions
from mino.model import Model, open_model, read_instructions
from mino.responses.request import Request, newest
from mino.sessions.conversation import Conversation
from mino.sessions.held import Held
from mino.settings import Settings
from mino.terminal import output
from mino.terminal.prompt import STDIN, Complete, Lines, Prompt, to_text
from mino.text import count

LABEL = "Assistant> "
WAYS_OUT = "/compact sums up older turns; /save NAME, then /clear starts an empty conversation"
_CANCELLED = 2  # records: the question and the end


def chat(home: Home, session: str | None, settings: Settings, environ: Mapping[str, str]) -> MinoError | None:
    """Talk until the input ends or says `/exit`. A question that fails is reported, and the next may be asked.

    Without a terminal the last failure of a question is returned, because nobody has seen it. Raises Interrupted for
    Ctrl+C, while an answer arrives and at the prompt; StorageFailed if something cannot be saved, or stdout cannot be
    written; and the failure if the conversation cannot be opened.
    """
    with (
        open_model(settings, environ) as model,
        Held(home, session, settings.wait, output.notice, settings.context.turns) as held,
    ):
        signals.install()  # from here on the terminal is in other modes, and must be restored
        output.show_lines(format_banner(model, held.conversation))
        with open_prompt(lambda typed: slash.complete(home, typed)) as prompt:
            failure = Chat(held, settings, model, prompt).run()
    output.show("Goodbye.\n")
    return None if output.is_terminal(STDIN) else failure


@contextmanager
def open_prompt(complete: Complete) -> Iterator[Prompt]:
    """A line editor if a person types and sees what is typed; else plain lines."""
    seen = output.is_terminal(STDIN) and output.is_terminal(output.STDOUT)
    if seen and not output.is_dumb():
        from mino.terminal.editor import Editor, without_echo

        with without_echo():
            yield Editor(complete)
    else:
        yield Lines()


def format_banner(model: Model, conversation: Conversation) -> Iterator[str]:
    """The lines that a person needs before the first question."""
    name = conversation.place.name
    turns = count(conversation.turns, "turn") if conversation.turns else "empty so far"
    yield f"Mino {__version__} - {model.name} {model.place}"
    yield f"History: {_short(conversation.journal.path)} ({f'{name}, ' if name else ''}{turns})"
    yield "Use /exit, Ctrl+D or Ctrl+C to quit, /help for more."


def _short(path: str) -> str:
    user = os.path.expanduser("~")
    return "~" + path.removeprefix(user) if path.startswith(user + os.sep) else path


@dataclass(slots=True)
class Chat:
    """One run of `chat`, with all that it needs open; `sent_turns` is how many turns the context has had.

    `commands` are those that were typed, for the up arrow; `attached` are the files for the next question.
    """

    held: Held
    settings: Settings
    model: Model
    prompt: Prompt
    sent_turns: int = 0
    commands: list[str] = field(default_factory=list)
    attached: Attached = field(default_factory=Attached)

    @property
    def conversation(self) -> Conversation:
        """The one that the chat holds now."""
        return self.held.conversation

    def run(self) -> MinoError | None:
        """Take questions and commands until the end; the failure of the last question that failed.

        The prompt comes only when the last turn is on disk.
        """
        failed: MinoError | None = None
        self._tell_size()
        output.show("\n")
        self.prompt.recall(self._earlier())
        while (said := self._read()) is not None:
            text = ""
            try:
                text = to_text(said)
                if text.strip() == slash.EXIT:
                    return failed
                if not text.strip():
                    continue
                self._take(text)
            except StorageFailed:
                raise
            except MinoError as failure:
                output.show_failure(failure)
                if not slash.is_command(text):
                    failed = failure
            # A signal that came while a failed turn was saved is still pending.
            signals.raise_pending()
            output.show("\n")
        return failed

    def _read(self) -> bytes | None:
        try:
            return self.prompt.read()
        except Interrupted:
            output.notice("left the chat; the conversation is saved")
            raise

    def _take(self, text: str) -> None:
        if slash.is_command(text):
            self.commands.append(text)
            place, moves = self.conversation.place, self.held.moves
            lines = slash.run(slash.Talk(self.held, self.model, self.attached), text)
            if self.conversation.place != place:
                output.name_session(self.conversation.place.name)
            output.show_lines(lines)
            if self.held.moves != moves:  # it is another conversation
                self.sent_turns = 0
                self.prompt.recall(self._earlier())
            self._tell_size()
        else:
            self._ask(text.replace("//", "/", 1) if text.lstrip().startswith("//") else text)

    def _earlier(self) -> Iterator[str]:
        """What the up arrow offers: the questions of the conversation, as one would type them, and then the commands.

        After /undo and /compact it is not read anew: whoever removes a question may want to change it and ask again.
        """
        for question in last_questions(self.conversation.journal.chunks()):
            yield question.replace("/", "//", 1) if question.lstrip().startswith("/") else question
        yield from self.commands

    def _ask(self, question: str) -> None:
        """Ask, and show the answer as it arrives. Raises as `turn.run` does."""
        instructions = read_instructions(self.held.home, self.settings)
        context = newest(self.conversation.context, self.settings.context.size)
        send_less = "/clear starts an empty conversation; this one is saved first" if context else ""
        request = Request(
            self.model.name, instructions, context, question, send_less, self.model.options, None, self.attached.parts
        )
        seq = self.conversation.journal.seq
        try:
            stream = output.AnswerStream(LABEL, self.model.waiting)
            wanted = Wanted(at_end=not self.settings.stream, usage=self.settings.usage)
            turn.run(self.conversation, self.model.client, request, AskView(stream, wanted, None))
        except Interrupted:
            # A signal that comes while the answer is being saved ends the chat after that.
            records = self.conversation.journal.seq - seq
            output.notice(
                f"left the chat; the turn is saved as {'cancelled' if records == _CANCELLED else 'completed'}"
                if records
                else "left the chat; the question was not sent"
            )
            raise
        self.attached.drop()  # only now: after a failure the question is asked again with them
        self._tell_size()

    def _tell_size(self) -> None:
        turns = len(newest(self.conversation.context, self.settings.context.size))
        tell_size(self.sent_turns, turns, self.settings.warn_turns, WAYS_OUT)
        # A number that goes up and down by a few, as after /undo, has not doubled again.
        if not self.sent_turns / 2 < turns <= self.sent_turns:
            self.sent_turns = turns
