"""The sentences about a finding: where it is, what to run next, and the refusal of an invalid file."""

import re

import pytest

from mino.errors import InvalidData
from mino.journal.findings import Finding, Report, advice, place, refuse_invalid


def test_an_invalid_file_names_the_place_and_the_next_command() -> None:
    finding = Finding("bad-json", 4, 357, "found an empty line, expected a record")
    assert place("/a b.jsonl", finding).startswith("'/a b.jsonl' line 4 (byte 357): bad-json: found an empty line")
    torn, wide = Finding("torn-tail", 9, 999, ""), Finding("wide-permissions", 0, 0, "")
    newer = Finding("unknown-type", 4, 357, 'found a record of type "note"')
    invalid = Report(findings=[torn, finding])
    assert advice("/a b.jsonl", invalid) == "mino history recover --salvage --dry-run '/a b.jsonl'"
    assert "sed -n 4p '/a b.jsonl'" in advice("/a b.jsonl", Report(findings=[torn, newer]))
    assert advice("/a b.jsonl", Report(findings=[wide, torn])) == "mino history recover '/a b.jsonl'"
    assert advice("/a b.jsonl", Report(findings=[wide])) == advice("/a b.jsonl", Report()) == ""
    refuse_invalid("x", Report())
    refuse_invalid("x", Report(findings=[Finding("torn-tail", 1, 0, ""), Finding("wide-permissions", 0, 0, "")]))
    with pytest.raises(InvalidData, match=re.escape("'x' line 4 (byte 357): bad-json")):
        refuse_invalid("x", Report(findings=[Finding("torn-tail", 9, 999, ""), finding]))
