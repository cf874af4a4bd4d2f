"""What a person reads about the size of a context: turns, items and bytes, and from when on it is large."""

from collections.abc import Mapping, Sequence
from typing import Any

from mino.responses.request import size_of
from mino.terminal import output
from mino.text import count


def tell_context(turns: int, items: Sequence[dict[str, Any]], there: Mapping[str, int]) -> None:
    """Report the size of a context of so many completed `turns`; `there` has the conversation's turns by status."""
    left_out = {**there, "completed": there.get("completed", 0) - turns}
    parts = ", ".join(f"{number} {status}" for status, number in left_out.items() if number)
    clause = f"; left out: {count(sum(left_out.values()), 'turn')} ({parts})" if parts else ""
    size = count(size_of(items), "byte")
    output.notice(f"the context has {count(turns, 'turn')}, {count(len(items), 'item')}, {size}{clause}")


def tell_size(before: int, turns: int, limit: int, way_out: str) -> None:
    """Report a context that had `before` turns and now has `turns` as large, and the way out.

    That is where the number reaches `limit` (0: never), and each time that it has doubled; nothing is ever cut.
    """
    if limit and turns >= limit and before < limit << (turns // limit).bit_length() - 1:
        output.notice(f"the context is large: {count(turns, 'turn')} sent with every question")
        output.hint(way_out)
