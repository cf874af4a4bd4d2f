"""A JSON Schema that an answer must fit, judged by jsonschema (mino-ask(1), An answer of a given form). No I/O.

Nothing is ever fetched: a reference leads into the same schema, or to one of the metaschemas that jsonschema has. A
schema can be made so that a judgement takes years, by a pattern for example, or more levels than a stack has. So each
judgement has a process of its own, and after LIMIT seconds it is given up.
"""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from mino.apart import GivenUp, run_apart
from mino.errors import InvalidData
from mino.responses.strict import is_strict
from mino.responses.values import NotJson, parse_strictly
from mino.text import BYTE_ORDER_MARK, one_line, shell_word

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

LIMIT = 10.0  # seconds of one judgement
_FENCES = ("```", "~~~")

Outcome = TypeVar("Outcome")


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

    def check(self, text: str, limit: float = LIMIT) -> Any:
        """The JSON value of `text`. Raises Misfit, and InvalidData if there is no judgement within `limit` seconds."""
        try:
            value = parse_strictly(text)
        except NotJson as flaw:
            if text.lstrip().startswith(_FENCES):
                raise Misfit("$", "found a code block, expected JSON alone", is_fenced=True) from None
            raise Misfit("$", str(flaw)) from None
        except ValueError as flaw:
            raise Misfit("$", str(flaw)) from None
        schema = self.text_format["schema"]
        what = f"the check of the answer against '{self.file}'"
        misfit = _judge(lambda: _first_misfit(schema, value), what, limit)
        if misfit:
            raise Misfit(*misfit)
        return value


def read_schema(data: bytes, file: str, limit: float = LIMIT) -> AnswerSchema:
    """The schema in `file` with the content `data`. Raises InvalidData if it is none, or refers to anything outside."""
    try:
        schema = parse_strictly(data.decode().removeprefix(BYTE_ORDER_MARK))
    except UnicodeDecodeError as error:
        raise InvalidData(f"'{file}' is not UTF-8 at byte {error.start}", f"file {shell_word(file)}") from None
    except ValueError as flaw:
        raise InvalidData(f"'{file}' is no JSON Schema: {flaw}") from None
    if not isinstance(schema, dict | bool):
        raise InvalidData(f"'{file}' is no JSON Schema: found {one_line(json.dumps(schema), 60)}, expected an object")
    said = _judge(lambda: _find_flaw(schema), f"the check of the schema '{file}'", limit)
    if said:
        raise InvalidData(f"'{file}' {said}")
    text_format = {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema)}
    return AnswerSchema(file, text_format)


def _judge(work: Callable[[], Outcome], what: str, limit: float) -> Outcome:
    _load()  # once here, and not in each child
    try:
        return run_apart(work, limit)
    except GivenUp as given_up:
        why = "needs too many levels, or too much memory" if given_up.in_time else f"takes longer than {limit:g} s"
        raise InvalidData(f"{what} {why}", "simplify the schema, or its patterns") from None


def _load() -> None:
    import referencing.jsonschema  # noqa: F401


def _draft(schema: Any) -> Any:
    """The class that judges by `schema`; None if its `$schema` is unknown."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    if not isinstance(schema, dict) or "$schema" not in schema:
        return Draft202012Validator
    return validator_for(schema, default=cast(Any, None)) if isinstance(schema["$schema"], str) else None


def _first_misfit(schema: Any, value: Any) -> tuple[str, str] | None:
    """Where `value` does not fit, and why; None if it fits."""
    from jsonschema_specifications import REGISTRY

    judge: Validator = _draft(schema)(schema, registry=REGISTRY)
    error = next(judge.iter_errors(value), None)
    return None if error is None else (one_line(error.json_path), one_line(error.message))


def _find_flaw(schema: Any) -> str:
    """Why `schema` cannot be used; empty if it can."""
    from jsonschema.exceptions import SchemaError

    draft = _draft(schema)
    if draft is None:
        return f"has an unknown $schema: {one_line(json.dumps(schema['$schema']), 80)}"
    try:
        draft.check_schema(schema)
    except SchemaError as error:
        return f"is no JSON Schema: {error.json_path}: {one_line(error.message)}"
    return _find_flaw_in_parts(draft, schema)


def _find_flaw_in_parts(draft: Any, schema: Any) -> str:
    """A reference that does not lead anywhere inside, or a pattern that Python cannot compile."""
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
                return f"has the {name} '{one_line(reference, 80)}', which is not in it"
            if reference.startswith("#"):  # what is not a place of schemas by the draft may be used as one
                waiting.append((specification.create_resource(found.contents), found.resolver))
        if flaw := _find_bad_pattern(contents):
            return flaw
        # `true` and `false` are schemas too, and have nothing in them.
        inner = (each for each in part.subresources() if isinstance(each.contents, dict))
        waiting += [(each, resolver.in_subresource(each)) for each in inner]
    return ""


def _find_bad_pattern(contents: dict[str, Any]) -> str:
    several = contents.get("patternProperties")
    for pattern in (contents.get("pattern"), *(several if isinstance(several, dict) else ())):
        if not isinstance(pattern, str):
            continue
        try:
            re.compile(pattern)
        except (re.error, OverflowError) as error:
            return f"has a pattern that Python's re cannot use, '{one_line(pattern, 60)}': {error}"
    return ""
