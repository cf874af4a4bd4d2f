"""`mino chat`: one question after another, in one conversation that is locked from the first prompt to the last."""

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mino import __version__, sessions, signals, terminal, turn
from mino.commands import slash
from mino.conversation import Conversation, open_conversation, tell_size
from mino.errors import MinoError, StorageFailed
from mino.home import Home
from mino.model import Model, open_model, read_instructions
from mino.prompt import Prompt, open_prompt, to_text
from mino.responses.request import Request
from mino.settings import Settings

LABEL = "Assistant> "


def chat(home: Home, settings: Settings, environ: Mapping[str, str]) -> None:
    """Talk until the input ends or says `/exit`. A question that fails is told, and the next may be asked.

    Raises Interrupted for Ctrl+C, while an answer arrives and at the prompt; StorageFailed where something cannot be
    saved, or stdout not be written; and whatever keeps the conversation from being opened.
    """
    with (
        open_model(settings, environ) as model,
        open_conversation(home, settings.wait, settings.context) as conversation,
    ):
        signals.catch()  # the terminal is in other modes from here on, and is to be left as it was
        terminal.show_lines(write_banner(home, model, conversation))
        with open_prompt(lambda typed: slash.complete(home, typed)) as prompt:
            Chat(home, settings, model, conversation, prompt).run()
    terminal.show("Goodbye.\n")


def write_banner(home: Home, model: Model, conversation: Conversation) -> Iterator[str]:
    """What a person needs to know before the first question."""
    name = sessions.live_name(home)
    turns = terminal.count(conversation.turns, "turn") if conversation.turns else "empty so far"
    yield f"Mino {__version__} - {model.name} {model.place}"
    yield f"History: {_short(conversation.journal.path)} ({f'{name}, ' if name else ''}{turns})"
    yield "Use /exit, Ctrl+D or Ctrl+C to quit, /help for more."


def _short(path: str) -> str:
    user = os.path.expanduser("~")
    return "~" + path.removeprefix(user) if path.startswith(user + os.sep) else path


class Chat(NamedTuple):
    """One run of `chat`, all that it needs open."""

    home: Home
    settings: Settings
    model: Model
    conversation: Conversation
    prompt: Prompt

    def run(self) -> None:
        """Take what is said until the end. The prompt comes only when the last turn is on disk."""
        self._tell_size()
        terminal.show("\n")
        while (said := self.prompt.read()) is not None:
            try:
                text = to_text(said)
                if text.strip() == slash.EXIT:
                    return
                if not text.strip():
                    continue
                self._take(text)
            except StorageFailed:
                raise
            except MinoError as failure:
                terminal.tell(failure)
            # One that came while a failed turn was saved is still pending.
            signals.raise_pending()
            terminal.show("\n")

    def _take(self, text: str) -> None:
        if text.lstrip().startswith("//"):
            self._ask(text.replace("//", "/", 1))
        elif text.lstrip().startswith("/"):
            before = len(self.conversation.context)
            terminal.show_lines(slash.run(self.home, self.conversation, text))
            if len(self.conversation.context) != before:
                self._tell_size()
        else:
            self._ask(text)

    def _ask(self, question: str) -> None:
        """Ask, and show the answer as it arrives. Raises as `turn.run` does, and AnswerIncomplete."""
        instructions = read_instructions(self.home, self.settings)
        request = Request(self.model.name, instructions, list(self.conversation.context), question)
        stream = terminal.AnswerStream(LABEL)
        try:
            terminal.show("\n")
            terminal.show_waiting(f"{LABEL}...")
            turn_id, answer = turn.run(self.conversation, self.model.client, request, stream.show)
        finally:
            stream.end()
        if stream.failure:
            raise StorageFailed(stream.failure.message, f"mino history show --turn {turn_id}")
        turn.refuse_incomplete(answer)
        self._tell_size()

    def _tell_size(self) -> None:
        tell_size(self.conversation, self.settings.warn_turns, "/save NAME, then /clear")
