"""`schemas/` → validators: jsonschema-rs decides, jsonschema explains (and is loaded only when a record is bad).

What JSON Schema cannot say about a record (JSON Schema 2020-12 takes 1.0 for an integer) is checked here too.
"""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mino.journal.findings import BadLine
from mino.journal.record import VERSION, Record, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jsonschema_rs import Validator

TYPES = ("user_message", "assistant_message", "turn_end")


@cache
def load(name: str) -> dict[str, Any]:
    """The published schema `name`, such as `record.v1`: beside the package in a checkout, inside it in a wheel."""
    package = Path(__file__).parent.parent
    file = f"schemas/{name}.schema.json"
    path = next((place / file for place in (package, package.parent) if (place / file).exists()), package / file)
    return cast("dict[str, Any]", json.loads(path.read_bytes()))


def _alternatives() -> dict[str, Any]:
    schema = load("record.v1")
    return {"$defs": schema["$defs"], "items": {"oneOf": schema["oneOf"]}}


@cache
def _batch_validator() -> "Validator":
    import jsonschema_rs

    return jsonschema_rs.validator_for({**_alternatives(), "type": "array"})


def are_valid(records: "Sequence[object]") -> bool:
    """Whether the schema accepts each of `records`, and every `v` and `seq` in them is an integer written as one."""
    return _batch_validator().is_valid(records) and all(
        type(record["v"]) is int and type(record["seq"]) is int  # type: ignore[index]  # an object, says the schema
        for record in records
    )


def check(value: object) -> Record:
    """`value` as a record. Raises BadLine where the schema refuses it, but leaves any integer `seq` to the order."""
    if not are_valid([value]):
        flaw = _explain(value)
        if flaw:
            raise flaw
    return cast("Record", value)


def _explain(value: object) -> BadLine | None:
    if not isinstance(value, dict):
        return BadLine("bad-record", f"found {quote(value)}, expected an object")
    for field in ("v", "type"):
        if field not in value:
            return _missing(field)
    version, kind = value["v"], value["type"]
    if type(version) is not int:
        return _wrong("v", version, f"the integer {VERSION}")
    if version != VERSION:
        return BadLine("unknown-version", f"found format version {quote(version)}, expected {VERSION}: {_NEWER}")
    if not isinstance(kind, str):
        return _wrong("type", kind, "a string")
    if kind not in TYPES:
        return BadLine("unknown-type", f"found a record of type {quote(kind)}: {_NEWER}")
    unknown = sorted(value.keys() - load("record.v1")["$defs"][kind]["properties"].keys())
    if unknown:
        return BadLine("unknown-field", f"found the field {quote(unknown[0])} in a {kind}: {_NEWER}")
    if "seq" in value and type(value["seq"]) is not int:
        return _wrong("seq", value["seq"], "an integer")
    return _explain_fields(value, kind)


_NEWER = "written by a newer Mino, or edited by hand"


def _explain_fields(record: dict[str, Any], kind: str) -> BadLine | None:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator({**load("record.v1"), "oneOf": [{"$ref": f"#/$defs/{kind}"}]})
    flaws = [flaw for error in validator.iter_errors(record) for flaw in error.context or ()]
    for flaw in sorted(flaws, key=lambda flaw: [str(part) for part in flaw.absolute_path]):
        path = ".".join(str(part) for part in flaw.absolute_path)
        match flaw.validator:
            case "required":
                present = flaw.instance.keys()
                missing = next(name for name in cast("list[str]", flaw.validator_value) if name not in present)
                return _missing(f"{path}.{missing}" if path else missing)
            case "minimum" if path == "seq":
                continue
            case "pattern" | "maxLength" if path == "turn_id":
                found = quote(flaw.instance)
                return BadLine("bad-turn-id", f"found the turn id {found}, expected 32 lower-case hex digits")
            case "type":
                return _wrong(path, flaw.instance, f"a value of type {flaw.validator_value}")
            case "minLength":
                return _wrong(path, flaw.instance, "at least one character")
            case "enum":
                return _wrong(path, flaw.instance, "one of " + ", ".join(cast("list[str]", flaw.validator_value)))
            case _:
                return _wrong(path, flaw.instance, f"what the schema says of {path}")
    return None


def _missing(field: str) -> BadLine:
    return BadLine("bad-record", f"the field {quote(field)} is missing")


def _wrong(field: str, value: object, expected: str) -> BadLine:
    return BadLine("bad-record", f"found {quote(value)} in the field {quote(field)}, expected {expected}")
