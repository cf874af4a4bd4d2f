"""The first fenced code block, by CommonMark 0.31 section 4.5, whole and in pieces."""

import random

import commonmark
import pytest

from mino.formats.fence import FirstBlock, first_block

CASES: list[tuple[str, str | None]] = [
    ("", None),
    ("no block, `inline` and ```inline```", None),
    ("```\ncode\n```\n", "code\n"),
    ("text\n\n```py title=x\nprint('你好 🙂')\n```\nmore\n```\nsecond\n```", "print('你好 🙂')\n"),
    ("~~~ a`b\nx\n~~~", "x\n"),
    ("``` a`b\nx\n```", ""),  # an info string has no backtick, and the second fence is open
    ("``\nx\n``", None),
    ("`````\na\n```\nb\n`````", "a\n```\nb\n"),
    ("```\na\n`````\nb", "a\n"),  # a longer one closes it too
    ("~~~\na\n```\n~~~", "a\n```\n"),
    ("```\na\n``` no\n```  \t\nb", "a\n``` no\n"),
    ("   ```\n    a\n  b\nc\n   ```", " a\nb\nc\n"),
    ("    ```\n    a\n    ```", None),  # indented code
    ("```\na\n    ```\n", "a\n    ```\n"),
    ("```\n```", ""),
    ("```", ""),
    ("```\n\n  \n```", "\n  \n"),
    ("```\nnever closed", "never closed"),
    ("```\nnever closed\n", "never closed\n"),
    ("```\na\n``", "a\n``"),
    ("text\n```\ninterrupts\n```", "interrupts\n"),
    ("- item\n\n  ```sh\n  ls\n    -l\n  ```\n- next", "ls\n  -l\n"),
    ("- ```sh\n  ls\n  ```", "ls\n"),
    ("1. a\n   - b\n\n     ~~~\n     深\n     ~~~", "深\n"),
    ("10) x\n    ```\n    y\n    ```", "y\n"),
    ("- ```\n  a\nb\n", "a\n"),  # it ends with the item
    ("- ```\n  a\n\n  b\n  ```", "a\n\nb\n"),
    ("> ```\n> a\n>b\n> ```", "a\nb\n"),
    ("> ```\n> a\nb\n```\nc", "a\n"),
    ("> - ```\n>   a\n>   ```", "a\n"),
    ("-\n\n  ```\n  a\n  ```", "a\n"),
    ("text\n2. ```\n   a\n", None),  # no list may begin with 2 in a paragraph
    ("text\n\n2. ```\n   a\n   ```", "a\n"),
    ("* * *\n  ```\na\n  ```", "a\n"),  # a rule, not a list
    ("\t```\na", None),
    ("-\t```\n\ta\n\t```", "a\n"),
    ("```\r\na\r\n\r\nb\r\n```\r\nc", "a\n\nb\n"),
    ("```\ra\rb\r```\rc", "a\nb\n"),
    ("```\na\rb\n```", "a\nb\n"),
    ("<details>\n```\na\n```\n</details>", "a\n"),
]


@pytest.mark.parametrize(("text", "block"), CASES)
def test_the_first_block(text: str, block: str | None) -> None:
    assert first_block(text) == block
    for size in (1, 2, 3, 5):
        taker = FirstBlock()
        pieces = [taker.feed(text[start : start + size]) for start in range(0, len(text), size)]
        content = "".join(pieces) + taker.end()
        assert (content if taker.found else None) == block, size


def test_content_comes_as_soon_as_it_is_certain() -> None:
    taker = FirstBlock()
    steps = [
        ("Sure:\n``", ""),
        ("`py\npri", "pri"),
        ("nt(1)\n", "nt(1)\n"),
        ("``", ""),  # it may be the end
        ("x", "``x"),
        ("y\n  ", "y\n"),
        ("z", "  z"),
        ("\n```", "\n"),
        ("\nafter", ""),
        ("\n```\nanother", ""),
    ]
    for piece, given in steps:
        assert taker.feed(piece) == given
    assert taker.over and taker.end() == ""


def test_a_line_ending_in_two_pieces_is_one() -> None:
    taker = FirstBlock()
    assert [taker.feed(piece) for piece in ("```\r", "\na\r", "\n", "\nb\r", "", "\n```\r")] == [
        "",
        "a\n",
        "",
        "\nb\n",
        "",
        "",
    ]
    assert taker.over


BITS = ["```", "````", "~~~", "~~~~", "``", "- ", "* ", "1. ", "2) ", "10. ", "> ", ">", "  ", "   ", "    ", " "]
BITS += ["text", "py", "# h", "---", "***", "`", "é中🙂", "a", "", "+ "]


def by_reference(text: str) -> str | None:
    """What a port of the reference parser of CommonMark finds."""
    for node, entering in commonmark.Parser().parse(text).walker():
        if entering and node.t == "code_block" and node.is_fenced:
            return str(node.literal)
    return None


def whole_lines(content: str | None) -> str | None:
    """`content` without the newlines at its end, of which the reference adds one."""
    return content and content.rstrip("\n")


@pytest.mark.parametrize("seed", range(4))
def test_it_agrees_with_the_reference_on_generated_documents(seed: int) -> None:
    chance = random.Random(seed)
    found = 0
    for _ in range(1000):
        lines = ["".join(chance.choices(BITS, k=chance.randint(0, 4))) for _ in range(chance.randint(1, 8))]
        if chance.random() < 0.7:
            opening = chance.choice(["", "- ", "> ", "1. ", "  "]) + chance.choice(["```", "~~~", "```py"])
            lines.insert(chance.randint(0, len(lines)), opening)
        text = chance.choice(["\n", "\r\n"]).join(lines) + chance.choice(["", "\n"])
        content = first_block(text)
        found += bool(content)
        assert whole_lines(content) == whole_lines(by_reference(text)), repr(text)
    assert found > 200


def test_a_long_line_is_given_while_it_comes_and_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taker, joined = FirstBlock(), 0
    original = FirstBlock._content

    def counted(self: FirstBlock, text: str) -> str | None:
        nonlocal joined
        joined += len(text)
        return original(self, text)

    monkeypatch.setattr(FirstBlock, "_content", counted)
    taker.feed("```\n")
    assert sum(len(taker.feed("字" * 100)) for _ in range(10_000)) == 1_000_000
    for _ in range(10_000):  # what may be a closing fence as long as a novel is not looked at each time
        taker.feed("`" * 100)
    taker.feed("\n" + "`" * 100)
    for _ in range(10_000):
        taker.feed("`" * 100)
    assert taker.end() == "" and joined < 3_000_000
