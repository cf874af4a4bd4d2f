"""The body of an answer → text: an event stream, or one whole response in JSON, whatever its type says. No I/O."""

import re
from collections.abc import Iterator
from itertools import chain

from mino.errors import ServiceFailed
from mino.responses.answer import AnswerFold
from mino.responses.exchange import Head
from mino.responses.failure import hide_key, read_body, shorter_base
from mino.responses.post import ConnectionLost
from mino.responses.sse import Decoder

_FIELD = re.compile(rb"(event|data|id|retry)?:")
_PADDING = b" \t\r\n\xef\xbb\xbf"
_SHORTEST = len("data:1")  # bytes of the shortest event: waiting for as many delays no event
# Bytes of one answer: a hundred times the longest that a model gives, and far less than the memory of a machine.
_LONGEST = 256 << 20


def fold_body(url: str, head: Head, pieces: Iterator[bytes], fold: AnswerFold, key: str | None) -> Iterator[str]:
    """Feed `fold`, and yield the text that each piece adds; ends as soon as `fold` is over.

    Raises ConnectionLost as `pieces` does, after a last event that came whole was used, and ServiceFailed for a web
    page and for an answer without an end.
    """
    pieces = _limited(pieces, url)
    start = b""
    for piece in pieces:
        start = (start + piece).lstrip(b"\r\n")  # signs of life before the answer; they are dropped, not scanned again
        if len(start.lstrip(_PADDING)) >= _SHORTEST:
            break
    body = start.lstrip(_PADDING)
    if body.startswith(b"{"):
        yield fold.add_whole(body + b"".join(pieces))
    elif body and "event-stream" not in _content_type(head) and not _FIELD.match(body):
        said = read_body(start).sentence(key)
        kind = hide_key(head.headers.get("content-type", ""), key, 80) or "no content type"
        raise ServiceFailed(
            f"'{url}' is not a Responses server: it answered {head.status} with {kind}: {said}",
            shorter_base(url) or "check --base-url; many servers need /v1 at the end",
        )
    else:
        yield from _fold_events(chain((start,), pieces), fold)


def _fold_events(pieces: Iterator[bytes], fold: AnswerFold) -> Iterator[str]:
    decoder = Decoder()
    broke = None
    try:
        for piece in pieces:
            yield "".join([fold.add(event) for event in decoder.feed(piece)])
            if fold.over:
                return
    except ConnectionLost as error:
        broke = error
    yield "".join([fold.add(event, cut=True) for event in decoder.end()])
    if broke and not fold.over:
        raise broke


def _limited(pieces: Iterator[bytes], url: str) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > _LONGEST:
            raise ServiceFailed(f"the answer from '{url}' is longer than {_LONGEST >> 20} MiB")
        yield piece


def _content_type(head: Head) -> str:
    return head.headers.get("content-type", "").lower()
