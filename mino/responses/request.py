"""Turns → the body of a request, in the five forms of the replay ladder (mino-ask(1), Old answers). No I/O.

Servers disagree on the form of an old output item that is sent back: some look its id up in a store that they do not
keep, some refuse reasoning that another server encrypted, some know no `refusal` part. Mino does not know which server
an item came from, so it sends the items as it received them, and the client takes the next step if a server objects.
The stored items never change.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson

from mino.responses.items import OUR_ANSWERS, OURS_TO_ANSWER, message_item, text_parts
from mino.responses.options import without_nulls
from mino.responses.parts import text_part, without_files

# With NO_FILES a picture of an earlier turn is a line of text, for a server that takes none.
AS_RECEIVED, WITHOUT_IDS, MESSAGES_ONLY, PLAIN_TEXT, NO_FILES = 0, 1, 2, 3, 4

ENCRYPTED_REASONING = "reasoning.encrypted_content"

_SURROGATE = re.compile("[\ud800-\udfff]")


class ContextTurn(Protocol):
    """A completed turn: the question and its parts, if there are more than its text; the answer and its items."""

    @property
    def user(self) -> str: ...
    @property
    def input(self) -> list[dict[str, Any]] | None: ...
    @property
    def assistant(self) -> str | None: ...
    @property
    def output(self) -> list[dict[str, Any]] | None: ...


class Form(NamedTuple):
    """The form of a request: a step of the ladder, and which fields are in it that a server may not take.

    `grammar` is for llama.cpp: the schema in its own field too.
    """

    step: int = AS_RECEIVED
    include: bool = True
    text_format: bool = True
    grammar: bool = False


FIRST_FORM = Form()

# For a server that does not know `text.format`; the check of the answer is the same.
_IN_WORDS = "Answer with JSON alone, without a code fence and without any other text. It must fit this JSON Schema:\n"

SomeTurn = TypeVar("SomeTurn", bound=ContextTurn)


class Request(NamedTuple):
    """One question with its context; `body` gives it in the form that a step of the ladder asks for.

    `send_less` says what a person can do where this is asked if the context is too much for the model; empty: nothing.
    `options` are further fields, in which null takes one away; `text_format` is what `text.format` asks of the answer;
    `files` are the content parts that go before the text of the question.
    """

    model: str
    instructions: str | None
    context: Sequence[ContextTurn]
    question: str
    send_less: str = ""
    options: Mapping[str, Any] = {}
    text_format: Mapping[str, Any] | None = None
    files: Sequence[dict[str, Any]] = ()

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The content of the question as it is sent."""
        return [*self.files, text_part(self.question)]

    def body(self, form: Form = FIRST_FORM) -> dict[str, Any]:
        """The JSON body of `POST {base}/responses`. `store` is always false: no server may keep the conversation."""
        return self._body(form, _without_nulls(self._input(form.step)))

    def encoded(self, form: Form = FIRST_FORM) -> bytes:
        """`body` as it is sent; for a long conversation, looking for nulls in its bytes is a third of its cost."""
        data = encode(self._body(form, self._input(form.step)))
        return encode(self.body(form)) if b":null" in data else data

    def _input(self, step: int) -> list[dict[str, Any]]:
        return [*_items(self.context, step), _question(self.parts)]

    def _body(self, form: Form, items: list[dict[str, Any]]) -> dict[str, Any]:
        instructions, wanted = self.instructions, self.text_format
        if wanted and not form.text_format:
            instructions = "\n\n".join(filter(None, (instructions, _IN_WORDS + encode(wanted["schema"]).decode())))
        body: dict[str, Any] = {"model": self.model}
        if instructions:
            body["instructions"] = instructions
        body |= {"input": items, "stream": True, "store": False}
        if form.include and "include" not in self.options:
            body["include"] = [ENCRYPTED_REASONING]
        body |= without_nulls(self.options)
        if wanted and form.text_format:  # only now, because a null in a schema is a value
            text = body.get("text")
            body["text"] = {**(text if isinstance(text, dict) else {}), "format": wanted}
            if form.grammar:
                body["json_schema"] = wanted["schema"]
        return body


def context_items(turns: Iterable[ContextTurn], step: int) -> list[dict[str, Any]]:
    """The input items of completed `turns`, oldest first: each question, then the items of its answer."""
    items: list[dict[str, Any]] = _without_nulls(_items(turns, step))
    return items


def newest(turns: Iterable[SomeTurn], size: int | None) -> list[SomeTurn]:
    """The newest of completed `turns`, without a gap: as many as `size` bytes hold of their items as received.

    None means all of them.
    """
    chosen = list(turns)
    if size is None:
        return chosen
    for start in range(len(chosen) - 1, -1, -1):
        size -= size_of(context_items((chosen[start],), AS_RECEIVED))
        if size < 0:
            return chosen[start + 1 :]
    return chosen


def size_of(items: Iterable[dict[str, Any]]) -> int:
    """How many bytes `items` are in a request, without the commas between them."""
    return sum(len(encode(item)) for item in items)


def forms(turns: Sequence[ContextTurn], begin: int) -> Iterator[int]:
    """The steps of the ladder from `begin` on, each only if its items differ from those of the step before.

    A ladder that begins with plain text has the form before it as another.
    """
    yield begin
    sent = context_items(turns, begin)
    for step in (*range(begin + 1, NO_FILES + 1), *((MESSAGES_ONLY,) if begin >= PLAIN_TEXT else ())):
        items = context_items(turns, step)
        if items != sent:
            yield step
            sent = items


def _items(turns: Iterable[ContextTurn], step: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in turns:
        items.append(_question(_parts(turn, step)))
        items += _answer(turn, step)
    return items


def encode(body: Any) -> bytes:
    """`body` as JSON in UTF-8. A lone surrogate, which UTF-8 cannot encode, becomes U+FFFD."""
    try:
        return orjson.dumps(body)
    except TypeError:
        # orjson refuses integers over 64 bits and lone surrogates; an item may hold both.
        return _SURROGATE.sub("\ufffd", json.dumps(body, ensure_ascii=False, separators=(",", ":"))).encode()


def _question(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": parts}


def _parts(turn: ContextTurn, step: int) -> list[dict[str, Any]]:
    if not turn.input:
        return [text_part(turn.user)]
    return turn.input if step < NO_FILES else without_files(turn.input)


def _answer(turn: ContextTurn, step: int) -> list[dict[str, Any]]:
    output = turn.output or []
    if not any(map(text_parts, output)):
        return [_message([turn.assistant], None, step)] if turn.assistant else []
    if step >= MESSAGES_ONLY:
        said = [(item, [text for _, text in text_parts(item)]) for item in output]
        return [_message(texts, item.get("phase"), step) for item, texts in said if texts]
    kept = _replayable(output)
    # Servers check an id against its neighbours: if one reasoning item is gone, they refuse the ids of the others.
    lost_reasoning = len(kept) < len(output) and _reasonings(kept) < _reasonings(output)
    if step < WITHOUT_IDS and not lost_reasoning:
        return kept
    return [{key: value for key, value in item.items() if key != "id"} for item in kept]


def _message(texts: list[str], phase: Any, step: int) -> dict[str, Any]:
    item = message_item(texts, phase)
    return {**item, "content": "".join(texts)} if step >= PLAIN_TEXT else item


def _replayable(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items that may go back: no calls, and reasoning only with its content and before the item it led to."""
    kept: list[dict[str, Any]] = []
    followed = False
    for item in reversed(output):
        kind = item.get("type")
        if kind in OURS_TO_ANSWER or kind in OUR_ANSWERS:
            followed = False
        elif kind != "reasoning":
            followed = True
            kept.append(item)
        elif followed and (item.get("encrypted_content") or item.get("content")):
            kept.append(item)
    kept.reverse()
    return kept


def _reasonings(items: list[dict[str, Any]]) -> int:
    return sum(item.get("type") == "reasoning" for item in items)


def _without_nulls(value: Any) -> Any:
    """`value` without the keys whose value is null; a part that has none is returned as it is, not copied."""
    if isinstance(value, dict):
        cleaned = {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
        return value if len(cleaned) == len(value) and all(cleaned[key] is value[key] for key in value) else cleaned
    if isinstance(value, list):
        copies = [_without_nulls(inner) for inner in value]
        return value if all(new is old for new, old in zip(copies, value, strict=True)) else copies
    return value
