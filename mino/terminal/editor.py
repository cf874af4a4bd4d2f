"""The line editor of `chat` on a terminal; the only module that knows prompt_toolkit.

Enter sends, Alt+Enter begins a new line, and a paste is one question, however many lines it has.
"""

import os
import signal
import termios
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from mino import signals
from mino.terminal import output
from mino.terminal.prompt import PROMPT, STDIN, Complete

_INDENT = " " * len(PROMPT)  # before the further lines of a question


class Editor:
    """Reads what a person types. It keeps earlier input in memory alone, so that files hold a question only once."""

    def __init__(self, complete: Complete) -> None:
        # A terminal that is asked for its cursor answers as if it typed; one that does not answer gets a warning.
        screen = Vt100_Output(_text(output.STDOUT, "w"), _size, term=os.environ.get("TERM"), enable_cpr=False)
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=_INDENT,
            key_bindings=_keys(),
            completer=_Words(complete),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            reserve_space_for_menu=0,
            history=InMemoryHistory(),
            input_processors=[TabsProcessor(tabstop=8, char1=" ", char2=" ")],
            erase_when_done=True,
            enable_suspend=True,
            input=Vt100Input(_text(STDIN, "r")),
            output=screen,
        )

    def read(self) -> bytes | None:
        """The next input; None at its end. Raises Interrupted for a signal, and for Ctrl+C as if it had sent one."""
        with signals.deferred(self._wake):
            text: str | None
            try:
                text = self._session.prompt(pre_run=self._check, set_exception_handler=False, handle_sigint=False)
            except KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
                text = ""  # if SIGINT is ignored
            except (EOFError, OSError):  # the terminal itself may be gone, with or without a SIGHUP
                text = None
            # The editor shows no more lines than the window has, but the whole question must stay on the screen.
            typed = self._session.default_buffer.text.rstrip("\n")
            output.show_lines([PROMPT + typed.replace("\n", "\n" + _INDENT)])
        # A paste often ends with a newline, which is not part of the question.
        return None if text is None else text.rstrip("\n").encode("utf-8", "surrogateescape")

    def recall(self, earlier: Iterable[str]) -> None:
        """Offer `earlier` input under the up arrow, the oldest first, in place of what was typed before."""
        self._session.history = self._session.default_buffer.history = InMemoryHistory([*earlier])

    def _wake(self) -> None:
        """A signal came: leave the event loop, which would otherwise sleep until the next key."""
        if self._session.app.loop:
            self._session.app.loop.call_soon_threadsafe(self._leave)

    def _check(self) -> None:
        if signals.is_pending():
            self._leave()

    def _leave(self) -> None:
        if not self._session.app.is_done:
            self._session.app.exit(exception=EOFError())


def _size() -> Size:
    """The window without its last row, because some terminals keep a copy of a window that is cleared whole."""
    try:
        columns, rows = os.get_terminal_size(output.STDOUT)
    except OSError:
        columns, rows = 0, 0
    return Size(rows=max((rows or 24) - 1, 1), columns=columns or 80)


def _text(fd: int, mode: str) -> TextIO:
    """`fd` in UTF-8, like everything that Mino reads and writes, whatever the locale; it is never closed."""
    return cast(TextIO, open(fd, mode, encoding="utf-8", closefd=False))


@contextmanager
def without_echo() -> Iterator[None]:
    """Hide input that is typed during an answer; the editor shows it when it reads next."""
    before = termios.tcgetattr(STDIN)
    quiet = [*before]
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(STDIN, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(STDIN, termios.TCSANOW, before)


class _Words(Completer):
    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        word, candidates = self._complete(document.text_before_cursor)
        for candidate in candidates:
            yield Completion(candidate, start_position=-len(word))


def _keys() -> KeyBindings:
    keys = KeyBindings()
    # While the earlier input is searched, Ctrl+C ends the search, and leaves the text as it was.
    has_text = ~is_searching & Condition(lambda: bool(get_app().current_buffer.text))

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("c-c", filter=has_text)
    def clear(event: KeyPressEvent) -> None:
        # Under the up arrow it is not lost.
        event.current_buffer.reset(append_to_history=True)

    @keys.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys
