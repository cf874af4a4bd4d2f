"""The conversation that a chat holds, and may exchange for another one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

from mino.home import Home
from mino.sessions import switch
from mino.sessions.conversation import open_conversation, open_place
from mino.sessions.place import Place, set_current
from mino.sessions.saved import Saved
from mino.text import Tell


class Held:
    """Opens the conversation called `session`, or the current one, and holds it within a `with` block.

    `keep` and `tell` are those of `open_conversation`, and so are the failures.
    `moves` counts how often another conversation took its place.
    """

    def __init__(self, home: Home, session: str | None, wait: float, tell: Tell, keep: int | None) -> None:
        self.home = home
        self._session = session
        self._wait = wait
        self._tell = tell
        self._keep = keep
        self.moves = 0
        self._stack = ExitStack()
        self.conversation = self._stack.enter_context(open_conversation(home, session, wait, tell, keep))

    def __enter__(self) -> "Held":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, place)

    def save(self, name: str) -> Saved:
        """Save the conversation as `name`. Raises as `switch.save`."""
        return switch.save(self.home, name, self._wait, self._tell, self.conversation.content())

    @contextmanager
    def move(self, name: str | None, *, replace_invalid: bool = False) -> Iterator[None]:
        """Hold the conversation called `name` (None: the unnamed one), and make it current at the end of the block.

        The old one is held until then, and goes on if anything fails, or if the other one is in use. With a `session`
        that was chosen for the chat alone, `current` stays.
        """
        before, place = self.conversation, Place(self.home, name)
        with ExitStack() as stack:
            if before.place != place:
                opened = open_place(place, self._wait, self._tell, self._keep, replace_invalid=replace_invalid)
                self.conversation = stack.enter_context(opened)
            try:
                yield
                if self._session is None:
                    set_current(self.home, name)
            except BaseException:
                self.conversation = before
                raise
            self.moves += 1
            if before.place != place:
                old, self._stack = self._stack, stack.pop_all()
                old.close()
