"""A turn as CommonMark: no text can swallow or imitate what comes after it."""

import pytest

from mino.formats.markdown import format_turn


def test_a_turn() -> None:
    assert format_turn("Turn 1, 2026-12-01", "法国的首都？\n🗼", "Paris.\n\n巴黎 😀") == (
        "## Turn 1, 2026-12-01\n\n**You**\n\n> 法国的首都？\n> 🗼\n\n**Assistant**\n\n> Paris.\n>\n> 巴黎 😀\n"
    )


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", ">\n"),
        ("好\n\n", "> 好\n"),
        ("a\r\nb\rc\nd\r\n", "> a\n> b\n> c\n> d\n"),
        ("a\n\r\n\rb", "> a\n>\n>\n> b\n"),
        ("a  \n \n\tb", "> a\n>\n> \tb\n"),
        ("> 引用", "> > 引用\n"),
        ("\u2028x\u0085y\x0bz", "> \u2028x\u0085y\x0bz\n"),
        ("```python\n# 标题\n<!-- open\n**Assistant**", "> ```python\n> # 标题\n> <!-- open\n> **Assistant**\n"),
    ],
)
def test_every_line_of_a_text_is_in_its_quote(text: str, quoted: str) -> None:
    assert format_turn("t", text, "x") == f"## t\n\n**You**\n\n{quoted}\n**Assistant**\n\n> x\n"
    assert format_turn("t", "x", text) == f"## t\n\n**You**\n\n> x\n\n**Assistant**\n\n{quoted}"
