"""Asking a server through the real client, and what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mino.errors import MinoError
from mino.responses.answer import Answer
from mino.responses.client import Client
from mino.responses.request import ContextTurn, Request
from mino.responses.server import Server
from mino.terminal import output
from mino.text import Tell
from tests.server import Reply, ScriptedServer

SOURCE = "OPENAI_API_KEY"


@dataclass
class Outcome:
    """The answer or the error, and the pieces shown before it."""

    answer: Answer | None = None
    error: MinoError | None = None
    pieces: list[str] = field(default_factory=list)

    @property
    def shown(self) -> str:
        return "".join(self.pieces)

    @property
    def text(self) -> str:
        """The stored text of an answer that must be there."""
        assert self.answer is not None, self.error
        return self.answer.text

    @property
    def message(self) -> str:
        """The sentence of an error that must be there."""
        assert self.error is not None, self.answer
        return self.error.message


def client(
    server: ScriptedServer | str,
    key: str | None = None,
    timeout: float = 10,
    retries: int = 0,
    tell_attempt: Tell | None = None,
    **more: Any,
) -> Client:
    url = server if isinstance(server, str) else server.url
    return Client(Server(url, key, SOURCE, timeout, retries), output.notice, tell_attempt, **more)


def request(question: str = "What? 什么?", context: Sequence[ContextTurn] = ()) -> Request:
    return Request("m", None, context, question)


class Collecting:
    """A display that keeps what is shown; `before` is called with each piece first."""

    def __init__(self, pieces: list[str], before: Callable[[str], object] = lambda text: None) -> None:
        self.pieces = pieces
        self.attempts = 0
        self._before = before

    def begin(self) -> None:
        self.attempts += 1

    def show(self, text: str) -> bool:
        self._before(text)
        self.pieces.append(text)
        return True


def put(asked: Client, what: Request | None = None, streamed: bool = True) -> Outcome:
    """Ask, and catch what Mino foresees; anything else is a failed test. Shown text must be stored text."""
    outcome = Outcome()
    try:
        outcome.answer = asked.ask(what or request(), Collecting(outcome.pieces) if streamed else None)
    except MinoError as error:
        outcome.error = error
    if outcome.answer and streamed:
        prefix = "Model refused: " if outcome.answer.refusal else ""
        assert outcome.shown.replace(prefix, "", 1) == outcome.answer.text
    return outcome


def ask(server: ScriptedServer | str, streamed: bool = True, **settings: Any) -> Outcome:
    return put(client(server, **settings), streamed=streamed)


def outcome_of(reply: Reply, **settings: Any) -> Outcome:
    """What one request makes of `reply`; a second request would be an error."""
    with ScriptedServer(reply) as server:
        outcome = ask(server, **settings)
        assert len(server.requests) == 1
        return outcome
