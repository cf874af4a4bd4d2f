"""Further fields of the request: how `-o` words are read, merged, and refused."""

from typing import Any

import pytest

from mino.errors import Misconfigured, UsageMistake
from mino.responses.options import check_options, read_options, without_nulls
from mino.values import merge


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ([], {}),
        (["temperature=0.2"], {"temperature": 0.2}),
        (["max_output_tokens=500"], {"max_output_tokens": 500}),
        (["n=9007199254740993000000"], {"n": 9007199254740993000000}),
        (["reasoning.effort=low"], {"reasoning": {"effort": "low"}}),
        (["a.b.c=true"], {"a": {"b": {"c": True}}}),
        (["user=小明 🙂"], {"user": "小明 🙂"}),
        (["user="], {"user": ""}),
        (["prompt_cache_key=a=b"], {"prompt_cache_key": "a=b"}),
        (['user="1"'], {"user": "1"}),
        (["x=NaN"], {"x": "NaN"}),  # it is no JSON
        (["x=-Infinity"], {"x": "-Infinity"}),
        (["x=[1,"], {"x": "[1,"}),
        (['tools=[{"type":"web_search"}]'], {"tools": [{"type": "web_search"}]}),
        (['tools=[{"parameters":{"const":null}}]'], {"tools": [{"parameters": {"const": None}}]}),
        (["temperature=null"], {"temperature": None}),
        (["temperature=1", "temperature=2"], {"temperature": 2}),
        (["reasoning.effort=low", 'reasoning={"summary":"auto"}'], {"reasoning": {"effort": "low", "summary": "auto"}}),
        (["a=1", "a.b=2"], {"a": {"b": 2}}),
        (['metadata={"键":"值"}', "metadata.k=v"], {"metadata": {"键": "值", "k": "v"}}),
        (["text.verbosity=low"], {"text": {"verbosity": "low"}}),
    ],
)
def test_words_are_json_or_else_text(words: list[str], fields: dict[str, Any]) -> None:
    assert read_options(words) == fields


@pytest.mark.parametrize(
    "word", ["", "=1", "temperature", "a..b=1", ".a=1", "a.=1", "a\x1b[31m=1", "温度", "a." * 5000 + "a=1"]
)
def test_what_is_not_key_and_value_is_refused(word: str) -> None:
    with pytest.raises(UsageMistake, match=r"is not KEY=VALUE$") as caught:
        read_options([word])
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ('a={"b":1,"b":2}', "found a key twice"),
        ("a=" + "9" * 4001, "integer of more than 4000 digits"),
        ("a=1e999", "found a number that is not finite"),
        ('a={"b":[1e999]}', "found a number that is not finite"),
        ('a="\\ud83d"', "found half of a character"),
        ("a=\udcff", "found half of a character"),
        ("a=" + "[" * 101 + "]" * 101, "levels of nesting"),
        ("a=" + "[" * 100_000 + "]" * 100_000, "levels of nesting"),
    ],
)
def test_a_value_that_no_request_can_hold_is_refused(word: str, why: str) -> None:
    with pytest.raises(UsageMistake, match=why):
        read_options([word])


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("input", "-a FILE"),
        ("instructions", "-s TEXT"),
        ("model", "-m NAME"),
        ("stream", "--no-stream"),
        ("store", "no server may keep"),
        ("previous_response_id", "--session NAME"),
        ("conversation", "--session NAME"),
    ],
)
@pytest.mark.parametrize("rest", ["=1", "=null", ".x=1"])
def test_fields_that_mino_makes_itself_cannot_be_set(name: str, instead: str, rest: str) -> None:
    with pytest.raises(UsageMistake, match=f"-o cannot set '{name}'") as caught:
        read_options(["temperature=1", name + rest])
    assert instead in caught.value.hint
    with pytest.raises(Misconfigured, match=f"'options' in config.toml cannot set '{name}'"):
        check_options({name: 1}, "'options' in config.toml")


def test_other_fields_of_config_toml_are_taken() -> None:
    check_options({"温度": 0.2, "a": {"b": [1, "二", True]}}, "'options'")


def test_objects_are_merged_field_by_field_and_all_else_is_replaced() -> None:
    weaker = {"a": 1, "b": {"c": [1, 2], "d": {"e": 1}}, "f": {"g": 1}}
    stronger = {"b": {"c": [3], "d": {"h": 2}}, "f": 5, "i": {"j": 1}}
    merged = {"a": 1, "b": {"c": [3], "d": {"e": 1, "h": 2}}, "f": 5, "i": {"j": 1}}
    assert merge(weaker, stronger) == merged
    assert weaker == {"a": 1, "b": {"c": [1, 2], "d": {"e": 1}}, "f": {"g": 1}}  # they stay as they are


def test_null_takes_a_field_away_but_stays_in_arrays() -> None:
    fields = merge({"a": 1, "b": {"c": 1, "d": 2}}, {"a": None, "b": {"c": None}, "e": [{"const": None}]})
    assert without_nulls(fields) == {"b": {"d": 2}, "e": [{"const": None}]}
