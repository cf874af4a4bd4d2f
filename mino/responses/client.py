"""Asking a server: attempts, retries, the replay ladder, and the sentence for every way to fail (spec sections 8, 13).

Nothing is tried again once a word was shown. Before that, a broken connection and a server that asks for patience get
`retries` further attempts, and a server that refuses the items of earlier answers gets them in a simpler form, which is
remembered for later turns.
"""

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from mino import terminal
from mino.errors import MinoError, Misconfigured, ServiceFailed
from mino.responses.answer import Answer, AnswerFold
from mino.responses.body import fold_body
from mino.responses.exchange import Exchange, FellSilent, Head
from mino.responses.failure import Complaint, http_failure, key_hint, quote, read_body
from mino.responses.post import Broke, is_loopback
from mino.responses.request import AS_RECEIVED, MESSAGES_ONLY, Request, context_items
from mino.responses.retry import LONGEST_WAIT, asked_wait, is_worth_retrying, own_wait
from mino.responses.watch import Watch

_CHECK_SERVER = "check that the server runs, and --base-url"
_REDIRECTS = 5
_ERROR_BYTES, _ERROR_SECONDS = 1 << 20, 10.0

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Server:
    """Whom to ask. `key_source` names where the key came from; `timeout` is the idle limit in seconds.

    `context_tokens` is how many tokens question and answer may have together, where that is known.
    """

    base_url: str
    key: str | None = field(repr=False)
    key_source: str
    timeout: float
    retries: int
    context_tokens: int | None = None


class _Setback(Exception):
    """An attempt that failed before anything was shown: the error to end with, and what may help against it."""

    def __init__(self, error: MinoError, complaint: Complaint | None, again: bool, wait: float | None = None) -> None:
        super().__init__()
        self.error = error
        self.complaint = complaint
        self.again = again
        self.wait = wait


class Client:
    """Asks one server. It remembers between turns which form of earlier answers that server takes."""

    def __init__(self, server: Server, *, step: int = AS_RECEIVED, watch: int | None = None) -> None:
        """`step`: where on the replay ladder to begin; `watch`: stdout's descriptor. Raises Misconfigured."""
        self._server = server
        self._url = f"{check_base_url(server.base_url)}/responses"
        self._key = check_key(server.key, server.key_source)
        self._watch = Watch(watch)
        self._step = step
        self._include = True
        self._told_replay = False
        self._told_plain = False

    def ask(self, request: Request, show: Show | None) -> Answer:
        """Ask, and give each piece of text to `show` as it arrives; None: nothing is shown before the end.

        Raises ServiceFailed, AccessRefused or Misconfigured, and ReaderGone when stdout's reader went; what `show`
        raises passes through. The connection is closed whatever happens.
        """
        self._tell_plain_http()
        failures = 0
        while True:
            try:
                return self._attempt(request, show)
            except _Setback as setback:
                if setback.complaint and self._concede(request, setback.complaint):
                    continue
                failures += 1
                if not setback.again or failures > self._server.retries:
                    raise setback.error from None
                wait = own_wait(failures) if setback.wait is None else setback.wait
                if terminal.is_terminal(terminal.STDERR):
                    attempt = f"attempt {failures + 1} of {self._server.retries + 1}"
                    terminal.notice(f"{setback.error.message}; {attempt} in {wait:.1f} s")
                self._watch.sleep(wait)

    def _attempt(self, request: Request, show: Show | None) -> Answer:
        body = request.encoded(self._step, self._include)
        url = self._url
        for _ in range(_REDIRECTS + 1):
            with closing(Exchange(url, body, self._key, self._server.timeout, self._watch)) as exchange:
                try:
                    head = exchange.head()
                except Broke as broke:
                    raise _Setback(ServiceFailed(str(broke), _CHECK_SERVER), None, again=True) from None
                except FellSilent:
                    raise self._silent() from None
                if 200 <= head.status < 300:
                    return self._read(url, head, exchange, show)
                if head.status not in (301, 302, 303, 307, 308):
                    raise self._refused(url, head, exchange, request.model)
                url = self._redirected(url, head)
        raise ServiceFailed(f"'{self._url}' redirects more than {_REDIRECTS} times")

    def _read(self, url: str, head: Head, exchange: Exchange, show: Show | None) -> Answer:
        fold = AnswerFold(self._key)
        shown = False
        broke = "the stream ended early"
        try:
            for text in fold_body(url, head, exchange.pieces(), fold, self._key):
                if text and show:
                    shown = True
                    show(text)
        except Broke as reason:
            broke = str(reason)
        except FellSilent:
            raise self._silent() from None
        if fold.broke_off:
            failure = ServiceFailed(f"the answer broke off: {broke}", "ask again")
            raise failure if shown else _Setback(failure, None, again=True)
        try:
            answer = fold.finish()
        except MinoError as error:
            if shown:
                raise
            raise _Setback(error, fold.complaint, again=False) from None
        for call in answer.calls:
            name = quote(call, self._key, 80)
            terminal.notice(f"the model wanted '{name}' called; mino has no tools, and leaves it at the text")
        return self._doubt(answer)

    def _doubt(self, answer: Answer) -> Answer:
        """`answer`, incomplete where the context was full at its end: llama.cpp calls such an answer completed."""
        used = answer.usage.get("total_tokens") if isinstance(answer.usage, dict) else None
        limit = self._server.context_tokens
        if limit and isinstance(used, int) and used >= limit:
            return answer._replace(status="incomplete", reason=f"the model's context of {limit} tokens is full")
        return answer

    def _refused(self, url: str, head: Head, exchange: Exchange, model: str) -> _Setback:
        complaint = read_body(exchange.rest(_ERROR_BYTES, _ERROR_SECONDS))
        error = http_failure(
            head.status,
            complaint,
            url=url,
            model=model,
            key=self._key,
            key_source=self._server.key_source,
            request_id=head.headers.get("x-request-id", ""),
        )
        again, wait = is_worth_retrying(head.status, head.headers, complaint), asked_wait(head.headers)
        if again and wait is not None and wait > LONGEST_WAIT:
            error = type(error)(f"{error.message}; it asks to wait {wait:.0f} s", f"ask again in {wait:.0f} s")
            again = False
        return _Setback(error, complaint, again, wait)

    def _redirected(self, url: str, head: Head) -> str:
        location = head.headers.get("location", "")
        try:
            target = urljoin(url, location)
            same = _origin(target) == _origin(url)
        except ValueError:
            target, same = location, False
        if same and head.status in (307, 308):
            return target
        where = quote(target, self._key)
        raise ServiceFailed(
            f"'{url}' redirects ({head.status}) to '{where}', and the conversation goes nowhere else",
            "if that is the right server, name it with --base-url",
        )

    def _concede(self, request: Request, complaint: Complaint) -> bool:
        """Whether the next attempt will ask in another way, one that the server did not refuse yet."""
        if self._include and complaint.param.startswith("include"):
            self._include = False
            return True
        if complaint.refuses_item:
            before = context_items(request.context, self._step)
            for step in range(self._step + 1, MESSAGES_ONLY + 1):
                if context_items(request.context, step) != before:
                    self._step = step
                    self._tell_replay(complaint)
                    return True
        if self._include and complaint.names_include:
            self._include = False
            return True
        return False

    def _tell_replay(self, complaint: Complaint) -> None:
        if not self._told_replay:
            self._told_replay = True
            terminal.notice(
                f"the service refuses earlier answers as they were received ({complaint.sentence(self._key)}); "
                'they are sent in a simpler form, which replay = "text" in config.toml makes permanent'
            )

    def _tell_plain_http(self) -> None:
        parts = urlsplit(self._url)
        if self._key and parts.scheme == "http" and not is_loopback(parts.hostname or "") and not self._told_plain:
            self._told_plain = True
            terminal.notice(f"the key and the conversation go to '{self._url}' unencrypted")

    def _silent(self) -> ServiceFailed:
        seconds = self._server.timeout
        return ServiceFailed(f"no word from '{self._url}' for {seconds:g} s", f"--timeout {seconds * 2:g} waits longer")


def check_base_url(url: str) -> str:
    """`url` without one trailing slash. Raises Misconfigured if no request can go there; never repeats a password."""
    authority = url.partition("://")[2].partition("/")[0] or url.partition("/")[0]
    if "@" in authority:
        raise Misconfigured(
            "the base URL has a user name or password in it", "take it out, and export OPENAI_API_KEY=…"
        )
    quoted = f"the base URL '{terminal.one_line(url)}'"
    if re.search(r"[\s\x00-\x1f\x7f\\]", url):
        raise Misconfigured(f"{quoted} has white space, a control character or a backslash in it")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        if host:
            host.encode("idna")
    except ValueError as error:  # UnicodeError is one
        raise Misconfigured(f"{quoted} is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Misconfigured(f"{quoted} does not begin with http:// or https:// and a host", "--base-url http://…/v1")
    if parts.query or parts.fragment:
        raise Misconfigured(f"{quoted} has a query or fragment, and /responses cannot be added to it")
    return url.removesuffix("/")


def check_key(key: str | None, source: str) -> str | None:
    """`key` if a header can hold it (RFC 6750 allows no more). Raises Misconfigured, without the key in any message."""
    for character in key or "":
        if character in "\r\n":
            raise Misconfigured(f"the key from {source} has more than one line", key_hint(source))
        if character > "\xff" or not character.isprintable() or character.isspace():
            kind = "white space" if character.isspace() else "a character that no key has"
            raise Misconfigured(f"the key from {source} has {kind} in it", key_hint(source))
    return key or None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("a redirect with a user name")
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port
