"""What a scripted server answers: replies step by step, and the ones that tests want again and again."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Step = bytes | float | threading.Event
"""What a reply does next: send bytes, wait that many seconds, or wait until the event is set."""

Ending = Literal["chunked", "length", "close", "cut", "reset"]
"""`chunked` and `length` end as HTTP says, `close` ends with the connection, `cut` breaks off inside a chunk, `reset`
does so with a TCP reset."""


@dataclass(frozen=True)
class Reply:
    """One answer. `before` happens before the head. With `raw` the steps are all there is: no head, no framing."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = "chunked"
    before: Sequence[Step] = ()
    raw: bool = False


def sse(*events: Mapping[str, Any] | bytes, named: bool = True) -> list[bytes]:
    """Each event as the bytes of a stream: its `event:` line (unless not `named`), its JSON, its blank line.

    Bytes stand for themselves: `b": ping\\n\\n"`.
    """
    stream = []
    for event in events:
        if isinstance(event, bytes):
            stream.append(event)
        else:
            name = f"event: {event['type']}\n" if named and "type" in event else ""
            # ASCII, so that a lone surrogate arrives as the escape that a server would send.
            stream.append(f"{name}data: {json.dumps(event)}\n\n".encode())
    return stream


def events(
    *events: Mapping[str, Any] | Step, named: bool = True, ending: Ending = "chunked", status: int = 200
) -> Reply:
    """A reply of these events, one chunk each, with pauses and gates between them."""
    steps: list[Step] = []
    for event in events:
        steps += sse(event, named=named) if isinstance(event, Mapping) else [event]
    return Reply(steps, status, {"content-type": "text/event-stream; charset=utf-8"}, ending)


def delta(text: str, index: int | None = 0, item_id: str = "msg_1") -> dict[str, Any]:
    """A piece of text; without the indexes that llama.cpp does not send if `index` is None."""
    where = {} if index is None else {"output_index": index, "content_index": 0}
    return {"type": "response.output_text.delta", "item_id": item_id, **where, "delta": text}


def message(text: str, item_id: str = "msg_1", **more: Any) -> dict[str, Any]:
    """A message item with one text part."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": content, **more}


def item_done(item: Mapping[str, Any], index: int | None = 0) -> dict[str, Any]:
    """The event that gives an output item whole."""
    where = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.done", **where, "item": item}


def ended(kind: str = "completed", **response: Any) -> dict[str, Any]:
    """A terminal event, whose response has what a test names besides id, model, status, output and usage."""
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    whole = {"id": "resp_1", "object": "response", "model": "m-1", "status": kind, "output": [], "usage": usage}
    return {"type": f"response.{kind}", "response": {**whole, **response}}


def answer_events(text: str, *, output: Sequence[Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """The documented sequence of events for `text`, five characters a delta; `output` are the items, else a message."""
    items = [message(text)] if output is None else [dict(item) for item in output]
    pieces = [text[n : n + 5] for n in range(0, len(text), 5)]
    begun = {"id": "resp_1", "object": "response", "model": "m-1", "status": "in_progress", "output": []}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *({"type": "response.output_item.added", "output_index": n, "item": item} for n, item in enumerate(items)),
        *(delta(piece, len(items) - 1) for piece in pieces),
        *(item_done(item, n) for n, item in enumerate(items)),
        ended(output=items),
    ]


def completed(text: str, *, output: Sequence[Mapping[str, Any]] | None = None) -> Reply:
    """A whole, successful, streamed answer."""
    return events(*answer_events(text, output=output))


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON body."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Reply([body], status, {"content-type": "application/json", **(headers or {})}, "length")


def body(data: bytes, content_type: str | None, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A body of any type, or of none."""
    kind = {} if content_type is None else {"content-type": content_type}
    return Reply([data], status, {**kind, **(headers or {})}, "length")


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    """An error in OpenAI's shape; `more` are further keys of it, `code` and `param` among them."""
    whole = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}
    return json_reply({"error": whole}, status, headers)
