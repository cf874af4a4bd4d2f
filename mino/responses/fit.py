"""A JSON Schema that an answer must fit, judged by jsonschema (mino-ask(1), An answer of a given form). No I/O.

Nothing is ever fetched: a reference leads into the same schema, or to one of the metaschemas that jsonschema has. A
schema can be made so that a judgement takes years, by a pattern for example; after LIMIT seconds it is given up.
"""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mino.errors import InvalidData
from mino.responses.strict import is_strict
from mino.responses.values import NotJson, parse_strictly
from mino.text import BYTE_ORDER_MARK, one_line, shell_word

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

LIMIT = 10.0  # seconds of one check
_SIMPLIFY = "simplify the schema, or its patterns"
_STDERR = 2
_FENCES = ("```", "~~~")


class Misfit(Exception):
    """The first place, as `$.people[2].age`, where an answer does not fit, and why."""

    def __init__(self, path: str, reason: str, *, is_fenced: bool = False) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.is_fenced = is_fenced  # it may be JSON in a code block


class AnswerSchema(NamedTuple):
    """The schema in `file`; `text_format` is what a request says of it."""

    file: str
    text_format: dict[str, Any]
    judge: "Validator"

    def check(self, text: str, limit: float = LIMIT) -> Any:
        """The JSON value of `text`. Raises Misfit, and InvalidData if there is no judgement within `limit` seconds."""
        with _judging(f"the check of the answer against '{self.file}'", limit):
            return self._check(text)

    def _check(self, text: str) -> Any:
        try:
            value = parse_strictly(text)
        except NotJson as flaw:
            if text.lstrip().startswith(_FENCES):
                raise Misfit("$", "found a code block, expected JSON alone", is_fenced=True) from None
            raise Misfit("$", str(flaw)) from None
        except ValueError as flaw:
            raise Misfit("$", str(flaw)) from None
        try:
            error = next(self.judge.iter_errors(value), None)
        except (RecursionError, MemoryError):
            raise
        except Exception as failure:  # whatever jsonschema makes of a schema that no metaschema forbids
            said = one_line(str(failure) or type(failure).__name__)
            raise InvalidData(f"the answer cannot be checked against '{self.file}': {said}") from None
        if error is not None:
            raise Misfit(one_line(error.json_path), one_line(error.message))
        return value


def read_schema(data: bytes, file: str, limit: float = LIMIT) -> AnswerSchema:
    """The schema in `file` with the content `data`. Raises InvalidData if it is none, or refers to anything outside."""
    with _judging(f"the check of the schema '{file}'", limit):
        schema = _parse(data, file)
        return AnswerSchema(file, _text_format(schema), _judge(schema, file))


def _text_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema)}


def _parse(data: bytes, file: str) -> Any:
    try:
        return parse_strictly(data.decode().removeprefix(BYTE_ORDER_MARK))
    except UnicodeDecodeError as error:
        raise InvalidData(f"'{file}' is not UTF-8 at byte {error.start}", f"file {shell_word(file)}") from None
    except ValueError as flaw:
        raise InvalidData(f"'{file}' is no JSON Schema: {flaw}") from None


def _judge(schema: Any, file: str) -> "Validator":
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY

    if not isinstance(schema, dict | bool):
        raise InvalidData(f"'{file}' is no JSON Schema: found {one_line(json.dumps(schema), 60)}, expected an object")
    draft: Any = Draft202012Validator
    if isinstance(schema, dict) and "$schema" in schema:
        named = schema["$schema"]
        draft = validator_for(schema, default=cast(Any, None)) if isinstance(named, str) else None
        if draft is None:
            raise InvalidData(f"'{file}' has an unknown $schema: {one_line(json.dumps(named), 80)}")
    try:
        draft.check_schema(schema)
    except SchemaError as error:
        raise InvalidData(f"'{file}' is no JSON Schema: {error.json_path}: {one_line(error.message)}") from None
    _check_parts(draft, schema, file)
    judge: Validator = draft(schema, registry=REGISTRY)
    return judge


def _check_parts(draft: Any, schema: Any, file: str) -> None:
    """Refuse a reference that does not lead anywhere inside, and a pattern that Python cannot compile."""
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    specification = specification_with(draft.META_SCHEMA.get("$schema", ""))
    root = specification.create_resource(schema)
    waiting = [(root, REGISTRY.resolver_with_root(root))]
    seen = set()
    while waiting:
        part, resolver = waiting.pop()
        contents = part.contents
        if not isinstance(contents, dict) or id(contents) in seen:
            continue
        seen.add(id(contents))
        for name in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = contents.get(name)
            if not isinstance(reference, str):
                continue
            try:
                found = resolver.lookup(reference)
            except (Unresolvable, ValueError, TypeError, KeyError, AttributeError):
                where = one_line(reference, 80)
                raise InvalidData(
                    f"'{file}' has the {name} '{where}', which is not in it", "put the schema into the file, in $defs"
                ) from None
            if reference.startswith("#"):  # what is not a place of schemas by the draft may be used as one
                waiting.append((specification.create_resource(found.contents), found.resolver))
        _check_patterns(contents, file)
        # `true` and `false` are schemas too, and have nothing in them.
        inner = (each for each in part.subresources() if isinstance(each.contents, dict))
        waiting += [(each, resolver.in_subresource(each)) for each in inner]


def _check_patterns(contents: dict[str, Any], file: str) -> None:
    several = contents.get("patternProperties")
    patterns = [contents.get("pattern"), *(several if isinstance(several, dict) else ())]
    for pattern in patterns:
        if not isinstance(pattern, str):
            continue
        try:
            re.compile(pattern)
        except (re.error, OverflowError) as error:
            what = f"the pattern '{one_line(pattern, 60)}' in '{file}' cannot be used: {error}"
            raise InvalidData(what, "write it as Python's re has it") from None


class _TimeOver(BaseException):
    """The time is over. It derives from BaseException, so that no `except Exception` of a library swallows it."""


@contextmanager
def _judging(what: str, seconds: float) -> Iterator[None]:
    """Give up a judgement, in the main thread, that takes more `seconds`, or more levels than Python has.

    Raises InvalidData, which says `what` was given up.
    """
    try:
        with _limited(seconds), _quiet():
            yield
    except _TimeOver:
        raise InvalidData(f"{what} takes longer than {seconds:g} s", _SIMPLIFY) from None
    except RecursionError:
        raise InvalidData(f"{what} needs too many levels", _SIMPLIFY) from None
    except BaseException as failure:
        if type(failure).__name__ != "PanicException":  # of rpds, which referencing uses, where no level is left
            raise
        raise InvalidData(f"{what} needs too many levels", _SIMPLIFY) from None


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise _TimeOver in this block after so many `seconds`; `re` lets signals in too."""

    def stop(_signum: int, _frame: object) -> None:
        raise _TimeOver

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let what a library writes to stderr itself go nowhere: a panic of rpds prints lines for programmers."""
    try:
        own = os.dup(_STDERR)
    except OSError:  # it is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDERR)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(own, _STDERR)
        os.close(own)
