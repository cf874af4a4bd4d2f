"""The errors of servers: error bodies and error events of every known shape → one clean sentence. No I/O.

OpenAI nests `{"error": {"message", "type", "param", "code"}}` or sends it flat, llama.cpp and OpenRouter number their
codes, Ollama's native routes send `{"error": "text"}`, FastAPI `{"detail": …}`, proxies send HTML, and LiteLLM answers
500 with an event stream. None of them may cause a traceback, two lines, or a line that repeats the key.
"""

import json
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, NamedTuple

from mino.errors import AccessRefused, MinoError, ServiceFailed
from mino.responses.sse import Decoder
from mino.text import one_line

# Some servers refuse an item of an earlier answer with another status than 400, or in an event, and say one of these.
_REFUSED_ITEM = re.compile(
    r"invalid_encrypted_content"
    r"|item with id .*not found"
    r"|encrypted[ _]content.*(could not be verified|not supported|did not match)"
    r"|without its required (following item|'reasoning' item)"
    r"|item\['content'\]"
    r"|cannot determine type of 'item'"
    r"|unknown (input item|content) type"
    r"|unsupported content\[\]\.type"
    r"|missing required field [`'\"]?id\b"
    r"|\binput[.\[]\d"
    r"|\b(image|file|audio|pdf)s? (input|content)s? (is|are) not supported",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(r"context_length_exceeded|exceed_context_size_error|context (size|length|window)", re.IGNORECASE)
_OF_MODEL_OR_KEY = re.compile(
    r"model_not_found|(invalid|unknown|unsupported|no such)[ _]model\b|\bmodel\b[^.]{0,80}(does not exist|not found)"
    r"|(invalid|incorrect|missing|no)[ _]api[ _]?key|\bapi[ _]?key\b.{0,20}(invalid|not valid|missing)"
    r"|authentication_error|permission_error",
    re.IGNORECASE,
)
# It must be named as a part of the request: OpenAI ends its server errors with "Please include the request ID".
_NO_INCLUDE = re.compile(
    r"[`'\"]include\b"
    r"|\.include\b"
    r"|\binclude\[\d"
    r"|(parameter|argument|field|property|option)s?( supplied)?\W{1,3}include\b"
    r"|\binclude\W{1,3}(parameter|argument|field|property|option|is (not|un))",
    re.IGNORECASE | re.DOTALL,
)
_NO_FORMAT = re.compile(
    r"\btext\W{1,3}format\b|response_?format|json[_ ]?schema|structured outputs?|grammar", re.IGNORECASE
)
_NO_ENCRYPTED = re.compile(r"encrypted[ _]content.*not supported", re.IGNORECASE | re.DOTALL)
# A key of the request that is named as such, and not in an echo of the request or as the type of an item.
_NAMED = r"^[`'\"]?{key}[`'\"]|\bbody\W{{1,3}}{key}\b|(parameter|argument|option)s?( supplied)?\W{{1,3}}{key}\b"


class ServerError(NamedTuple):
    """What a server said about a failure, uncut: it may hold anything, the key too; `sentence` makes it fit to show."""

    message: str = ""
    code: str = ""
    kind: str = ""
    param: str = ""

    def sentence(self, key: str | None) -> str:
        """One clean line of at most 200 characters, without the key and without a full stop."""
        said = self.message.strip() or self.code or self.kind
        return hide_key(said, key).rstrip(".")

    def refuses_items(self, status: int, keys: Iterable[str]) -> bool:
        """Whether old output items may be the cause, so that the next step of the replay ladder may help.

        Whatever a 400 or 422 says, they may be, unless it names something else: one of the other `keys` of the
        request, the model, the key. A list of what servers say would miss what the next server says.
        """
        if self.too_long or self.out_of_quota:
            return False
        if _REFUSED_ITEM.search(self._said):
            return True
        return self._status(status) in (400, 422) and not (
            _OF_MODEL_OR_KEY.search(self._said) or any(map(self._names, keys))
        )

    @property
    def names_include(self) -> bool:
        """Whether the request's `include` is the cause."""
        return self.param.startswith("include") or bool(_NO_INCLUDE.search(self._said))

    def refuses_format(self, status: int) -> bool:
        """Whether `text.format` is the cause, as a field that the server does not know or a schema that it refuses."""
        if self._status(status) not in (400, 422):
            return False
        return bool(re.match(r"text\b|response_format\b", self.param) or _NO_FORMAT.search(self._said))

    @property
    def refuses_encrypted(self) -> bool:
        """Whether encrypted reasoning is the cause: that of an old item, or that which `include` asks for."""
        return bool(_NO_ENCRYPTED.search(self._said))

    @property
    def too_long(self) -> bool:
        """Whether the conversation is longer than the model's context."""
        return bool(_TOO_LONG.search(self._said))

    @property
    def out_of_quota(self) -> bool:
        """Whether the account's quota is used up, which waiting does not change."""
        return "insufficient_quota" in (self.code, self.kind)

    def _status(self, status: int) -> int:
        """The status of the HTTP answer, or in an event the one that it would have had."""
        if status >= 300:
            return status
        return 400 if self.code in ("400", "422", "invalid_prompt") or self.kind == "invalid_request_error" else status

    def _names(self, key: str) -> bool:
        if self.param:
            return re.split(r"[.\[]", self.param, maxsplit=1)[0] == key
        return bool(re.search(_NAMED.format(key=re.escape(key)), self.message[:4000], re.IGNORECASE))

    @property
    def _said(self) -> str:
        # The message is cut, because the searches take quadratic time on one that is made for that.
        return f"{self.code} {self.kind} {self.param} {self.message[:4000]}"


def hide_key(text: str, key: str | None, limit: int = 200) -> str:
    """The `text` of a server as one clean line of at most `limit` characters, with `[key]` in place of the key."""
    hidden = text.replace(key, "[key]") if key else text  # before the cut: half a key is a leak too
    return one_line(hidden, limit)


def read_error(value: Any) -> ServerError:
    """The error in a JSON value: an error event, the `error` of a response, or the body of an HTTP error."""
    if not isinstance(value, dict):
        return ServerError(_text(value))
    inner = value.get("error")
    source = inner if isinstance(inner, dict) and inner else value
    message = _text(source.get("message")) or _text(source.get("error_message"))
    if not message and isinstance(inner, str):
        message = ": ".join(filter(None, (inner, _text(value.get("error_description")))))
    message = message or _detail(value.get("detail")) or _text(value.get("message"))
    code = _text(source.get("code"))
    kind = _text(source.get("type")) or _text(value.get("error_type"))
    return ServerError(message or ("" if code else _dump(source)), code, kind, _text(source.get("param")))


def read_body(body: bytes) -> ServerError:
    """The error in the body of an HTTP error: JSON, an event stream, HTML or text."""
    if (value := _json(body)) is not None:
        return read_error(value)
    decoder = Decoder()
    for event in [*decoder.feed(body), *decoder.end()]:
        if isinstance(value := _json(event.data), dict):
            return read_error(value)
    return ServerError(_without_tags(body.decode("utf-8", "replace")))


def http_failure(
    status: int,
    server_error: ServerError,
    *,
    url: str,
    model: str,
    key: str | None,
    key_source: str,
    request_id: str,
    send_less: str = "",
) -> MinoError:
    """The error of an HTTP answer with `status`: its class, its sentence, and what to run next."""
    said = server_error.sentence(key) or _phrase(status)
    said = f"{said} (request id {hide_key(request_id, key, 80)})" if request_id else said
    if server_error.too_long:
        return too_long(said, send_less)
    if status in (401, 403) and key:
        return AccessRefused(
            f"the service refused the key from {key_source} ({status}): {said}",
            key_hint(key_source),
        )
    if status in (401, 403):
        return AccessRefused(
            f"the service refused the request, and no key was sent ({status}): {said}", "export OPENAI_API_KEY=…"
        )
    if status in (404, 405):
        return ServiceFailed(f"'{url}' answered {status}: {said}", _where_else(url, model))
    return ServiceFailed(f"the service answered {status}: {said}")


def key_hint(source: str) -> str:
    """Where to put another key: an environment variable is written in capitals, a setting is not."""
    return f"export {source}=…" if source.isupper() else f"check {source} in config.toml"


def too_long(said: str, send_less: str) -> ServiceFailed:
    """The error for a conversation that the model's context cannot hold."""
    return ServiceFailed(f"the conversation is too long for the model: {said}", send_less)


def shorter_base(url: str) -> str:
    """What to run if the base URL of `url` ends in the path of a request, which Mino adds itself; empty if not."""
    base = url.removesuffix("/responses").rstrip("/")
    for end in ("/responses", "/chat/completions", "/completions"):
        if base.endswith(end):
            return f"the base URL is without {end}, because mino adds /responses: --base-url {base.removesuffix(end)}"
    return ""


def _where_else(url: str, model: str) -> str:
    if hint := shorter_base(url):
        return hint
    base = url.removesuffix("/responses")
    if "/v1/v1" in base:
        return f"the base URL has /v1 twice: --base-url {base.replace('/v1/v1', '/v1')}"
    if base.endswith("/v1"):
        return f"check the base URL and the model name '{one_line(model)}'; some servers need the base URL without /v1"
    return f"check the model name '{one_line(model)}'; many servers need /v1: --base-url {base}/v1"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"


def _detail(detail: Any) -> str:
    """FastAPI's `detail`: a text, or a list of `{"loc": ["body", "input", 1, …], "msg": …}`."""
    if not isinstance(detail, list):
        return _text(detail)
    faults = [fault for fault in detail if isinstance(fault, dict)]
    return "; ".join(f"{'.'.join(map(str, _list(fault.get('loc'))))}: {_text(fault.get('msg'))}" for fault in faults)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """`value` as text: null and false are empty, and all but a string, such as llama.cpp's integer codes, is JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None or value is False else _dump(value)


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)  # people read it, and an escape would hide a key from `hide_key`
    except RecursionError:
        return "an error that is nested too deeply to show"


def _without_tags(text: str) -> str:
    """The words of an HTML page. It is split, because a search takes quadratic time on a page of nothing but `<`."""
    if not text.lstrip().startswith("<"):
        return text
    pieces = (piece for piece in text.split("<") if not piece.lower().startswith(("script", "style")))
    return " ".join(piece.partition(">")[2] for piece in pieces)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
