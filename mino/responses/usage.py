"""The `usage` of a response, as a server sends it → the numbers that people want to see. No I/O."""

from typing import Any


def format_usage(usage: Any, *, in_full: bool = True) -> str:
    """`1234 tokens in (1000 cached), 56 out (12 reasoning)`, with the numbers that `usage` has; empty if it has none.

    Without `in_full` the parts in brackets are left out. A number that is missing or is no count is not invented.
    """
    parts: list[str] = []
    for name, details, part, word in (
        ("input_tokens", "input_tokens_details", "cached_tokens", "cached"),
        ("output_tokens", "output_tokens_details", "reasoning_tokens", "reasoning"),
    ):
        number = _count(usage, name)
        if number is None:
            continue
        inner = _count(usage.get(details), part) if in_full else None
        unit = "" if parts else f" token{'' if number == 1 else 's'}"
        parts.append(f"{number}{unit} {name.partition('put')[0]}" + f" ({inner} {word})" * bool(inner))
    return ", ".join(parts)


def _count(value: Any, name: str) -> int | None:
    number = value.get(name) if isinstance(value, dict) else None
    return number if type(number) is int and 0 <= number < 10**15 else None
