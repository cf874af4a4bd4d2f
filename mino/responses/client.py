"""Asking a server: attempts, retries, the replay ladder, and the sentence for every way to fail (mino-ask(1)).

Nothing is retried once any text was shown. Before that, a broken connection and a server that may succeed later get
`retries` further attempts, and a server that refuses the items of earlier answers gets them in a simpler form, which is
remembered for later turns.
"""

from collections.abc import Callable
from contextlib import closing
from typing import Protocol
from urllib.parse import urlsplit

from mino.errors import AccessRefused, MinoError, Reply, ServiceFailed
from mino.responses.answer import Answer, AnswerFold
from mino.responses.body import fold_body
from mino.responses.exchange import Exchange, Head, IdleTimeout
from mino.responses.failure import ServerError, hide_key, http_failure, read_body
from mino.responses.post import ConnectionLost
from mino.responses.redirect import redirected
from mino.responses.request import AS_RECEIVED, Form, Request, forms
from mino.responses.retry import LONGEST_WAIT, asked_wait, is_worth_retrying, own_wait
from mino.responses.server import Server, check_key, endpoint, is_loopback, without_query
from mino.text import Tell
from mino.watch import Watch

_CHECK_SERVER = "check that the server is running, and --base-url"
_REDIRECTS = 5
_ERROR_BYTES, _ERROR_SECONDS = 1 << 20, 10.0


class Display(Protocol):
    """Where an answer is shown as it arrives."""

    def begin(self) -> None:
        """An attempt begins, and nothing of an earlier one was shown."""

    def show(self, text: str) -> bool:
        """Take the next piece; whether anything of it is shown now."""


class _Setback(Exception):
    """An attempt that failed before anything was shown: the error to end with, and what may help against it."""

    def __init__(
        self,
        error: MinoError,
        server_error: ServerError | None,
        again: bool,
        wait: float | None = None,
        status: int = 200,
    ) -> None:
        super().__init__()
        self.status = status
        self.error = error
        self.server_error = server_error
        self.again = again
        self.wait = wait


class Client:
    """Asks one server. It remembers between turns which form of earlier answers that server takes."""

    def __init__(
        self,
        server: Server,
        tell: Tell,
        tell_attempt: Tell | None = None,
        *,
        step: int = AS_RECEIVED,
        watch: int | None = None,
        tick: Callable[[], None] | None = None,
    ) -> None:
        """`tell` gets notices, `tell_attempt` one for each further attempt; `step` is where the replay ladder begins.

        `watch` is stdout's descriptor: its reader may go while Mino waits for the server; `tick` is called about once
        a second then. Raises Misconfigured.
        """
        self.server = server
        self.has_streamed = False  # the last answer came in events
        self._tell = tell
        self._tell_attempt = tell_attempt
        self._url = endpoint(server.base_url, "responses")
        self._key = check_key(server.key, server.key_source)
        self._watch = Watch(watch, tick)
        self._step = step
        self._include = True
        self.takes_format = True  # no server has refused text.format yet
        self._told_replay = False
        self._told_plain = False

    def ask(self, request: Request, display: Display | None) -> Answer:
        """Ask, and give each piece of text to `display` as it arrives; with None, nothing is shown before the end.

        Raises ServiceFailed and AccessRefused, which then have a `reply`; Misconfigured; and ReaderGone if stdout's
        reader is gone. Exceptions of `display` pass through. The connection is always closed.
        """
        try:
            return self._ask(request, display)
        except (ServiceFailed, AccessRefused) as failure:
            failure.reply = failure.reply or Reply()
            raise

    def _ask(self, request: Request, display: Display | None) -> Answer:
        self._tell_plain_http()
        failures = 0
        ladder = forms(request.context, self._step)
        form = next(ladder)
        refusal: _Setback | None = None  # the first one of old items

        def take() -> None:
            if refusal and refusal.server_error and form > self._step:
                self._tell_replay(refusal.server_error)
            self._step = form

        while True:
            try:
                return self._attempt(request, form, display, take)
            except _Setback as setback:
                if self._drops_field(request, setback):
                    continue
                if self._refuses_items(request, setback):
                    refused_too = refusal is not None
                    refusal = refusal or setback
                    if (following := next(ladder, None)) is not None:
                        form = following
                        continue
                    if self._include and setback.server_error and setback.server_error.refuses_encrypted:
                        self._include = False
                        ladder = forms(request.context, self._step)
                        form, refusal = next(ladder), None
                        continue
                    if not setback.again:
                        raise _refused_in_all_forms(refusal.error, request) if refused_too else refusal.error from None
                failures += 1
                if not setback.again or failures > self.server.retries:
                    raise setback.error from None
                wait = own_wait(failures) if setback.wait is None else setback.wait
                if self._tell_attempt:
                    attempt = f"attempt {failures + 1} of {self.server.retries + 1}"
                    self._tell_attempt(f"{setback.error.message}; {attempt} in {wait:.1f} s")
                self._watch.sleep(wait)

    def _attempt(self, request: Request, form: int, display: Display | None, take: Callable[[], None]) -> Answer:
        """One attempt with the context in that `form`; `take` is called when it is clear that the server takes it."""
        body = request.encoded(Form(form, self._include, self.takes_format, self.server.has_grammars))
        url = self._url
        for _ in range(_REDIRECTS + 1):
            with closing(Exchange(url, body, self._key, self.server.timeout, self._watch)) as exchange:
                try:
                    head = exchange.head()
                except ConnectionLost as broke:
                    raise _Setback(ServiceFailed(str(broke), broke.hint or _CHECK_SERVER), None, again=True) from None
                except IdleTimeout:
                    raise self._silent() from None
                if 200 <= head.status < 300:
                    return self._read(without_query(url), head, exchange, request, display, take)
                if head.status not in (301, 302, 303, 307, 308):
                    raise self._refused(without_query(url), head, exchange, request)
                url = redirected(url, head, self._key)
        raise ServiceFailed(f"'{without_query(self._url)}' redirects more than {_REDIRECTS} times")

    def _read(
        self,
        url: str,
        head: Head,
        exchange: Exchange,
        request: Request,
        display: Display | None,
        take: Callable[[], None],
    ) -> Answer:
        fold = AnswerFold(self._key, request.send_less)
        self.has_streamed = "event-stream" in head.headers.get("content-type", "")
        shown = False
        if display:
            display.begin()
        broke = "the stream ended early"
        try:
            for text in fold_body(url, head, exchange.pieces(), fold, self._key):
                if text and display and display.show(text) and not shown:
                    take()
                    shown = True
        except ConnectionLost as reason:
            broke = str(reason)
        except IdleTimeout:
            silent = self._silent()
            silent.reply = Reply(text=fold.text)
            raise silent from None
        if fold.broke_off:
            failure = ServiceFailed(f"the answer broke off: {broke}", "ask again")
            failure.reply = Reply(text=fold.text)
            raise failure if shown else _Setback(failure, None, again=True)
        try:
            answer = fold.finish()
        except MinoError as error:
            error.reply = Reply(text=fold.text)
            if shown:
                raise
            raise _Setback(error, fold.server_error, again=False) from None
        if not shown:
            take()
        for call in answer.calls:
            name = hide_key(call, self._key, 80)
            self._tell(f"the model asked to call '{name}'; mino has no tools, and the answer is its text alone")
        return self._doubt(answer, request)

    def _doubt(self, answer: Answer, request: Request) -> Answer:
        """`answer`, incomplete if it reached a limit, because llama.cpp and Ollama call such an answer completed."""
        usage = answer.usage if isinstance(answer.usage, dict) else {}
        asked = request.options.get("max_output_tokens") or self.server.output_tokens
        for name, limit, reason in (
            ("total_tokens", self.server.context_tokens, "the model's context of {} tokens is full"),
            ("output_tokens", asked, "max_output_tokens: it has {}"),
        ):
            used = usage.get(name)
            if isinstance(limit, int) and isinstance(used, int) and used >= limit > 0 and answer.status == "completed":
                return answer._replace(status="incomplete", reason=reason.format(limit))
        return answer

    def _refused(self, url: str, head: Head, exchange: Exchange, request: Request) -> _Setback:
        server_error = read_body(exchange.rest(_ERROR_BYTES, _ERROR_SECONDS))
        error = http_failure(
            head.status,
            server_error,
            url=url,
            model=request.model,
            key=self._key,
            key_source=self.server.key_source,
            request_id=head.headers.get("x-request-id", ""),
            send_less=request.send_less,
        )
        again, wait = is_worth_retrying(head.status, head.headers, server_error), asked_wait(head.headers)
        if again and wait is not None and wait > LONGEST_WAIT:
            error = type(error)(f"{error.message}; it asks to wait {wait:.0f} s", f"ask again in {wait:.0f} s")
            again = False
        error.reply = Reply(head.status, wait)
        return _Setback(error, server_error, again, wait, head.status)

    def _drops_field(self, request: Request, setback: _Setback) -> bool:
        """Whether the server names a field that may go, which is then left out of this request and all later ones."""
        if not setback.server_error:
            return False
        if self._include and "include" not in request.options and setback.server_error.names_include:
            self._include = False
            return True
        if self.takes_format and request.text_format and setback.server_error.refuses_format(setback.status):
            self.takes_format = False
            said = setback.server_error.sentence(self._key)
            self._tell(f"the service refuses text.format ({said}); the schema is sent in the instructions")
            return True
        return False

    def _refuses_items(self, request: Request, setback: _Setback) -> bool:
        """Whether the server may take the question if the answers before it come in a simpler form."""
        keys = request._replace(context=[]).body(Form(include=self._include)).keys() - {"input"}
        return setback.server_error is not None and setback.server_error.refuses_items(setback.status, keys)

    def _tell_replay(self, server_error: ServerError) -> None:
        if not self._told_replay:
            self._told_replay = True
            self._tell(
                "the service refuses earlier answers as they were received "
                f"({server_error.sentence(self._key) or 'no reason given'}); "
                'they are sent in a simpler form, which replay = "text" in config.toml makes permanent'
            )

    def _tell_plain_http(self) -> None:
        parts = urlsplit(self._url)
        if self._key and parts.scheme == "http" and not is_loopback(parts.hostname or "") and not self._told_plain:
            self._told_plain = True
            self._tell(f"the key and the conversation go to '{without_query(self._url)}' unencrypted")

    def _silent(self) -> ServiceFailed:
        seconds = self.server.timeout
        return ServiceFailed(
            f"no data from '{without_query(self._url)}' for {seconds:g} s", f"--timeout {seconds * 2:g} waits longer"
        )


def _refused_in_all_forms(error: MinoError, request: Request) -> MinoError:
    said = f"{error.message}; the simpler forms of earlier answers were refused too"
    refused = type(error)(said, error.hint or request.send_less)
    refused.reply = error.reply
    return refused
