"""Events → text as it comes, then the whole answer (mino-ask(1), The answer). No I/O.

Only the event type in the JSON and the text are trusted. Indexes, ids, sequence numbers, item and part events are
missing, repeated or contradictory on one server or another, so text is compared with the text already shown: a later
event that repeats it adds nothing, one that continues it adds the rest, one that differs is ignored. Stored text equals
shown text.
"""

import json
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import orjson

from mino.errors import MinoError, ServiceFailed
from mino.responses.failure import ServerError, hide_key, read_error, too_long
from mino.responses.items import OURS_TO_ANSWER, clean_item, message_item, text_parts
from mino.responses.shown import REFUSAL, TEXT, Messages, Part, Shown
from mino.responses.sse import Event
from mino.responses.values import clean, exact, read_json

_HEARTBEATS = (b"ping", b"keep-alive", b"keepalive")


class Answer(NamedTuple):
    """A finished answer; `reason` says why an incomplete one was cut, if the server said it."""

    status: Literal["completed", "incomplete"]
    reason: str | None
    text: str
    refusal: bool
    model: str | None
    response_id: str | None
    usage: Any | None
    output: list[dict[str, Any]]
    shown: str = ""  # the text with `Model refused: ` before a refusal, as it is shown

    @property
    def calls(self) -> list[str]:
        """The names of the functions that the model asked to call, or the types of other items that wait for us."""
        waiting = [item for item in self.output if item["type"] in OURS_TO_ANSWER]
        return [str(item.get("name") or item["type"]) for item in waiting]


class AnswerFold:
    """Folds the events of one response. `key` is hidden in errors that repeat it; `send_less` is that of the request.

    `over` becomes true when nothing that follows matters; `server_error` is the server's error if it failed.
    """

    def __init__(self, key: str | None = None, send_less: str = "") -> None:
        self.over = False
        self.server_error: ServerError | None = None
        self._key = key
        self._send_less = send_less
        self._error: MinoError | None = None
        self._status: Literal["", "completed", "incomplete"] = ""
        self._response: dict[str, Any] = {}
        self._model: str | None = None
        self._response_id: str | None = None
        self._shown = Shown()
        self._last: tuple[Any, Any, Any] | None = None  # output_index, content_index, item_id of the last text delta
        self._items: dict[int | str, dict[str, Any]] = {}
        self._messages = Messages()

    @property
    def broke_off(self) -> bool:
        """Whether the stream, if it ended here, ended early: no terminal event came and no error."""
        return not self._status and self._error is None

    @property
    def text(self) -> str:
        """The text so far."""
        return self._shown.text

    def add(self, event: Event, cut: bool = False) -> str:
        """The text that `event` adds, often none. With `cut` the stream ended in the event, which may not be whole."""
        if self.over:
            return ""
        try:
            said = orjson.loads(event.data)
        except orjson.JSONDecodeError:
            return self._add_odd(event, cut)
        if type(said) is not dict:
            return "" if cut else self._break(event.data)
        if said.get("type") == "response.output_text.delta":
            delta = said.get("delta")
            where = (said.get("output_index"), said.get("content_index"), said.get("item_id"))
            if where == self._last and type(delta) is str:
                return self._shown.more(delta)
        return self._fold(event.name, said, event.data)

    def add_whole(self, body: bytes) -> str:
        """The text of a whole response in JSON, from a server that does not stream."""
        said = read_json(body)
        if not isinstance(said, dict):
            return self._break(body)
        if said.get("error") and not said.get("output"):
            return self._fail(read_error(said))
        if _is_foreign(said):
            return self._be_foreign(said)
        if not isinstance(said.get("output"), list) and not isinstance(said.get("status"), str):
            return self._break(body)
        return self._end("response.completed", {"response": said})

    def finish(self) -> Answer:
        """The answer. Raises ServiceFailed if the response failed, broke off, or has no visible text."""
        if self._error is not None:
            raise self._error
        if not self._status:
            raise ServiceFailed("the stream ended early, before the answer was complete", "ask again")
        details = self._response.get("incomplete_details") if self._status == "incomplete" else None
        reason = details.get("reason") if isinstance(details, dict) else None
        answer = Answer(
            status=self._status,
            reason=hide_key(reason, self._key) if isinstance(reason, str) and reason else None,
            text=self._shown.text,
            refusal=self._shown.refusal,
            model=self._model,
            response_id=self._response_id,
            usage=clean(self._response.get("usage")),
            output=self._output(),
            shown=self._shown.whole_text,
        )
        if answer.status == "completed" and not answer.text.strip():
            raise ServiceFailed(_no_text(answer, self._key))
        return answer

    def _add_odd(self, event: Event, cut: bool) -> str:
        """Data that orjson refuses: heartbeats sent as data, `[DONE]`, a lone surrogate, or no JSON at all."""
        data = event.data.strip()
        if not data or data.startswith(b":") or data.lower() in _HEARTBEATS:
            return ""
        if data.startswith(b"[DONE]"):
            self.over = True
            return ""
        said = read_json(data)
        if isinstance(said, dict):
            return self._fold(event.name, said, data)
        return "" if cut else self._break(data)

    def _fold(self, name: str, said: dict[str, Any], data: bytes) -> str:
        kind = said.get("type")
        if not isinstance(kind, str):
            if said.get("error") or said.get("object") == "error" or said.get("error_message"):
                return self._fail(read_error(said))
            if _is_foreign(said):
                return self._be_foreign(said)
            kind = name
        match kind:
            case "response.output_text.delta":
                return self._delta(said, TEXT)
            case "response.refusal.delta":
                return self._delta(said, REFUSAL)
            case "response.output_text.done":
                return self._part_done(said, TEXT, said.get("text"))
            case "response.refusal.done":
                return self._part_done(said, REFUSAL, said.get("refusal"))
            case "response.content_part.done":
                parts = text_parts({"type": "message", "content": [said.get("part")]})
                return "".join(self._part_done(said, part_kind, text) for part_kind, text in parts)
            case "response.output_item.added":
                self._item_added(said)
            case "response.output_item.done":
                return self._item_done(exact(said, data))
            case "response.created" | "response.queued" | "response.in_progress":
                self._note(said.get("response"))
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._end(kind, exact(said, data))
            case "message_start":  # Anthropic's first event
                return self._be_foreign(said)
            case _ if kind == "error" or name == "error" or (said.get("error") and not kind.startswith("response.")):
                return self._fail(read_error(said))
        return ""  # reasoning, tools, annotations, heartbeats, and whatever servers invent next

    def _delta(self, said: dict[str, Any], kind: str) -> str:
        delta = said.get("delta")
        if not isinstance(delta, str) or not delta:
            return ""
        self._last = (
            (said.get("output_index"), said.get("content_index"), said.get("item_id")) if kind == TEXT else None
        )
        return self._shown.piece(self._part(said, kind), delta)

    def _part_done(self, said: dict[str, Any], kind: str, text: Any) -> str:
        self._last = None
        return self._shown.whole(self._part(said, kind), text) if isinstance(text, str) else ""

    def _part(self, said: dict[str, Any], kind: str) -> Part:
        find = self._messages.of_piece if "delta" in said else self._messages.of_whole
        content = said.get("content_index")
        return find(said.get("output_index"), said.get("item_id")), content if type(content) is int else 0, kind

    def _item_added(self, said: dict[str, Any]) -> None:
        item = said.get("item")
        if isinstance(item, dict) and item.get("type") == "message":
            self._last = None
            self._messages.begin(said.get("output_index"), item.get("id"))

    def _item_done(self, said: dict[str, Any]) -> str:
        item = clean_item(said.get("item"))
        if item is None:
            return ""
        self._last = None
        index, name = said.get("output_index"), item.get("id")
        if type(index) is int:
            self._items[index] = item
        elif item in self._items.values():
            return ""  # sent twice
        else:
            self._items[f"without index {len(self._items)}"] = item  # an id decides nothing: servers repeat them
        if item["type"] != "message":
            return ""
        message = self._messages.of_item(index, name)
        self._messages.close()
        return self._shown.whole_message(message, text_parts(item))

    def _output(self) -> list[dict[str, Any]]:
        """The items to keep: those that came in the stream; else the response's own; else the text as a message."""
        keys = list(self._items)
        if all(isinstance(key, int) for key in keys):
            keys.sort()
        streamed, own = [self._items[key] for key in keys], self._own_items()
        items = own if _have_text(own) and not _have_text(streamed) else streamed or own
        return items or ([message_item([self._shown.text])] if self._shown.text else [])

    def _own_items(self) -> list[dict[str, Any]]:
        """The items of the terminal event's response; equal ones are one, but items of one id may be different ones."""
        output = self._response.get("output")
        items = map(clean_item, output if isinstance(output, list) else [])
        return list({json.dumps(item, sort_keys=True): item for item in items if item is not None}.values())

    def _note(self, response: Any) -> None:
        if isinstance(response, dict):
            model, name = clean(response.get("model")), clean(response.get("id"))
            self._model = model if isinstance(model, str) else self._model
            self._response_id = name if isinstance(name, str) else self._response_id

    def _end(self, kind: str, said: dict[str, Any]) -> str:
        response = said.get("response")
        self._response = response if isinstance(response, dict) else {}
        self._note(response)
        # Mocks and gateways send `completed` with status `incomplete` or `failed`: the worse of the two counts.
        ends = (kind.removeprefix("response."), self._response.get("status"))
        if "failed" in ends or "cancelled" in ends:
            error = self._response.get("error") or self._response.get("error_type")
            return self._fail(read_error(self._response) if error else ServerError("no reason given"))
        self.over = True
        self._status = "incomplete" if "incomplete" in ends else "completed"
        # If items with text came in the stream, their text was shown, and the response's items may hold it twice.
        own = [] if _have_text(self._items.values()) else self._own_items()
        return self._shown.whole_answer([parts for item in own if (parts := text_parts(item))])

    def _fail(self, server_error: ServerError) -> str:
        self.over = True
        self.server_error = server_error
        said = server_error.sentence(self._key)
        self._error = (
            too_long(said, self._send_less) if server_error.too_long else ServiceFailed(f"the service failed: {said}")
        )
        return ""

    def _be_foreign(self, said: dict[str, Any]) -> str:
        self.over = True
        what = said.get("object") or said.get("type")
        named = f": it sent '{hide_key(what, self._key, 80)}'" if isinstance(what, str) else ""
        self._error = ServiceFailed(
            f"the service answers in another protocol, not that of the Responses API{named}",
            "check --base-url; it must be that of a server with the Responses API",
        )
        return ""

    def _break(self, data: bytes) -> str:
        self.over = True
        start = ServerError(data.decode("utf-8", "replace")).sentence(self._key)
        self._error = ServiceFailed(f"the service sent data that is not an event of the Responses API: {start}")
        return ""


def _is_foreign(said: dict[str, Any]) -> bool:
    """Whether `said`, which has no type of an event, is of Chat Completions, Completions or Gemini."""
    kind = said.get("object")
    if isinstance(kind, str) and kind.startswith(("chat.completion", "text_completion")):
        return True
    return any(isinstance(value := said.get(key), list) and bool(value) for key in ("choices", "candidates"))


def _have_text(items: Iterable[dict[str, Any]]) -> bool:
    return any(text_parts(item) for item in items)


def _no_text(answer: Answer, key: str | None) -> str:
    if answer.calls:
        return f"the model gave no text: it asked to call '{hide_key(answer.calls[0], key, 80)}', and mino has no tools"
    if any(item["type"] == "reasoning" for item in answer.output):
        return "the model gave only reasoning and no answer"
    return "the model gave an empty answer"
