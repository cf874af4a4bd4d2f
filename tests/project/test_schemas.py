"""The published schemas: valid themselves, named as they are, and in step with the program."""

import json
from pathlib import Path

import jsonschema
import jsonschema_rs
import pytest

from mino.journal import schema
from mino.journal.findings import CODES
from mino.journal.schema import TYPES

FOLDER = Path(__file__).parents[2] / "schemas"
OPTIONAL = {"user_message": {"input"}, "assistant_message": {"output", "model", "usage"}, "turn_end": set()}
NAMES = ["answer.v1", "match.v1", "record.v1", "recovery.v1", "report.v1", "session.v1", "turn.v1"]

# What programs rely on: keys may be added, never renamed, within a version.
KEYS = {
    "answer.v1": [
        *("turn_id", "session", "status", "text", "parsed", "refusal"),
        *("model", "response_id", "usage", "output", "error"),
    ],
    "turn.v1": [
        *("number", "turn_id", "time", "status", "user", "input", "assistant"),
        *("output", "model", "usage", "lines"),
    ],
    "match.v1": ["session", "number", "turn_id", "time", "role", "line"],
    "report.v1": ["file", "session_id", "state", "bytes", "records", "turns", "findings"],
    "recovery.v1": [
        *("file", "state", "action", "dry_run", "recovery_copy", "cut_bytes", "closed_turn", "kept_turns", "dropped"),
    ],
    "session.v1": ["name", "session_id", "current", "state", "turns", "title", "created", "saved", "bytes"],
}


def test_these_are_published_and_no_others() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == [f"{name}.schema.json" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_says_what_it_is(name: str) -> None:
    data = json.loads((FOLDER / f"{name}.schema.json").read_bytes())
    assert schema.load(name) == data
    assert data["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert data["$id"] == f"urn:mino:schema:{name}"
    assert data["title"] and data["description"]
    jsonschema.Draft202012Validator.check_schema(data)
    assert jsonschema_rs.meta.is_valid(data)


@pytest.mark.parametrize("name", KEYS)
def test_an_output_has_its_keys_for_good_and_may_get_more(name: str) -> None:
    data = schema.load(name)
    assert data["required"] == KEYS[name]
    assert set(data["required"]) <= set(data["properties"])
    assert "additionalProperties" not in data


def test_a_record_has_no_other_fields() -> None:
    definitions = schema.load("record.v1")["$defs"]
    assert [each["$ref"] for each in schema.load("record.v1")["oneOf"]] == [f"#/$defs/{kind}" for kind in TYPES]
    for kind in TYPES:
        assert definitions[kind]["additionalProperties"] is False
        assert definitions[kind]["properties"]["type"] == {"const": kind}
        optional = set(definitions[kind]["properties"]) - set(definitions[kind]["required"])
        assert optional == OPTIONAL[kind]


def test_a_report_names_the_codes_of_the_program() -> None:
    finding = schema.load("report.v1")["properties"]["findings"]["items"]
    assert finding["properties"]["code"]["enum"] == [*CODES]


def test_the_statuses_are_the_same_everywhere() -> None:
    ends = schema.load("record.v1")["$defs"]["turn_end"]["properties"]["status"]["enum"]
    assert schema.load("turn.v1")["properties"]["status"]["enum"] == [*ends, "open", "in-progress"]
    assert schema.load("report.v1")["properties"]["turns"]["required"] == [*ends, "open"]
    states = schema.load("report.v1")["properties"]["state"]["enum"]
    assert states == ["clean", "recoverable", "invalid", "in-use"]
    assert schema.load("recovery.v1")["properties"]["state"]["enum"] == states[:3]
