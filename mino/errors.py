"""The kinds of failure that Mino foresees, each with its exit status (mino(1), EXIT STATUS).

A message is lower case, quotes its subject and has no full stop; a hint is the exact next command.
Only `mino.__main__` and `mino.cli` make an exit status of a failure, so that it means the same in every command.
"""

from typing import NamedTuple


class Reply(NamedTuple):
    """What came from the service before it failed: the status of HTTP, the seconds that it asks to wait, the text.

    Each is None or empty if nothing of the kind came; within a stream there is no status.
    """

    http_status: int | None = None
    retry_after: float | None = None
    text: str = ""


class MinoError(Exception):
    """A foreseen failure: one sentence, and the next command to run, if there is one."""

    status: int
    reply: Reply | None = None  # set if it is a failure of the service

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageMistake(MinoError):
    """The command line is wrong: an empty question, a bad value, a bad or ambiguous name."""

    status = 2


class AnswerIncomplete(MinoError):
    """The service cut the answer short (token limit, content filter); the part that arrived was shown."""

    status = 3


class InvalidData(MinoError):
    """A conversation or another named file is invalid, there is more than one, or the question is not text."""

    status = 65


class NotFound(MinoError):
    """A named file, turn or conversation does not exist."""

    status = 66


class ServiceFailed(MinoError):
    """The service failed, could not be reached, broke off, or gave no text."""

    status = 69


class CannotCreate(MinoError):
    """A file or directory cannot be created, or a name is taken."""

    status = 73


class StorageFailed(MinoError):
    """Reading, writing or syncing failed, or a file is a link or was replaced; nothing continues after it."""

    status = 74


class Exhausted(MinoError):
    """Memory, threads or file descriptors ran out: a limit of the process is reached, or the machine's."""

    status = 74


class SessionInUse(MinoError):
    """Another process holds the conversation."""

    status = 75


class AccessRefused(MinoError):
    """The service refused the key, or a file may not be read."""

    status = 77


class Misconfigured(MinoError):
    """No key, no home, an unreadable setting or SOUL.md, a missing extra, or a broken library or certificate file."""

    status = 78


class ReaderGone(Exception):
    """The reader of stdout closed it (`mino ask … | head -1`); the process dies by SIGPIPE, without a message."""


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived; the turn is cancelled and the process dies by that signal.

    It derives from BaseException, like KeyboardInterrupt, so that no `except Exception` of a library swallows it.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum
