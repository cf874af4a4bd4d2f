"""The first fenced code block, by CommonMark 0.31 section 4.5, whole and in pieces."""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import commonmark
import pytest
from markdown_it import MarkdownIt

from mino.formats.fence import FirstBlock, _Line, first_block

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
    ("> ```\n>\ta", "  a"),  # the quotation takes one column of the tab
    ("> " * 99 + "```\n" + "> " * 99 + "深", "深"),
    ("> " * 101 + "```\na", None),  # nobody means so many
]


@pytest.mark.parametrize(("text", "block"), CASES)
def test_the_first_block(text: str, block: str | None) -> None:
    assert first_block(text) == block
    for size in (1, 2, 3, 5):
        assert in_pieces(text, range(0, len(text), size)) == block, size
    for cut in range(len(text)):
        assert in_pieces(text, [0, cut]) == block, cut


def in_pieces(text: str, starts: Iterable[int]) -> str | None:
    """The block of `text`, which comes in pieces that begin at `starts`."""
    taker = FirstBlock()
    content = "".join(taker.feed(text[start:end]) for start, end in pairwise([*starts, len(text)])) + taker.end()
    return content if taker.found else None


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


def test_a_block_that_its_item_ends_is_over_at_once() -> None:
    taker = FirstBlock()
    steps = [("- ```\n  甲\n", "甲\n", False), (" ", "", False), ("乙", "", True), ("\n  丙\n", "", True)]
    for piece, given, is_over in steps:
        assert (taker.feed(piece), taker.over) == (given, is_over), piece
    assert taker.end() == ""


BITS = ["```", "````", "~~~", "~~~~", "``", "- ", "* ", "1. ", "2) ", "10. ", "> ", ">", "  ", "   ", "    ", " "]
BITS += ["text", "py", "# h", "---", "***", "===", "`", "é中🙂", "a", "", "+ ", "1.", "123456789. ", "1234567890. "]


def documents(seed: int, number: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(number):
        lines = ["".join(chance.choices(BITS, k=chance.randint(0, 4))) for _ in range(chance.randint(1, 8))]
        if chance.random() < 0.7:
            opening = chance.choice(["", "- ", "> ", "1. ", "  "]) + chance.choice(["```", "~~~", "```py"])
            lines.insert(chance.randint(0, len(lines)), opening)
        yield chance.choice(["\n", "\r\n", "\r"]).join(lines) + chance.choice(["", "\n"])


QUIRK = re.compile(r"(?:^|[\r\n]) {4,}>")  # for markdown-it it goes on with a quotation, against section 5.1


def by_commonmark(text: str) -> str | None:
    """What a port of the reference parser finds."""
    for node, entering in commonmark.Parser().parse(text).walker():
        if entering and node.t == "code_block" and node.is_fenced:
            return str(node.literal)
    return None


def by_markdown_it(text: str) -> str | None:
    return next((token.content for token in MarkdownIt("commonmark").parse(text) if token.type == "fence"), None)


def comparable(content: str | None) -> str | None:
    """`content` with lines of blanks empty, of which parsers keep more or fewer, and without those at its end."""
    return content and "\n".join(line if line.strip() else "" for line in content.split("\n")).rstrip("\n")


@pytest.mark.parametrize("parse", [by_commonmark, by_markdown_it])
@pytest.mark.parametrize("seed", range(4))
def test_it_agrees_with_other_parsers_on_generated_documents(seed: int, parse: Callable[[str], str | None]) -> None:
    found = 0
    for text in documents(seed, 1000):
        if parse is by_markdown_it and QUIRK.search(text):
            continue
        content = first_block(text)
        found += bool(content)
        assert comparable(content) == comparable(parse(text)), repr(text)
    assert found > 200


def test_pieces_of_generated_documents_are_the_whole() -> None:
    chance = random.Random(0)
    for text in documents(4, 2000):
        cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randint(0, 9)))
        assert in_pieces(text, [0, *cuts]) == first_block(text), (text, cuts)


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


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The characters that each step took, copied or looked at."""
    counts: list[int] = []

    def count(kind: type, name: str, cost: Callable[..., int]) -> None:
        original = getattr(kind, name)

        def counted(self: Any, *arguments: Any) -> Any:
            counts.append(1 + cost(self, *arguments))
            return original(self, *arguments)

        monkeypatch.setattr(kind, name, counted)

    for name in ("indent", "is_blank", "skip_blank"):
        count(_Line, name, lambda line: len(line.rest))
    count(_Line, "take", lambda line, length: len(line.rest))
    count(_Line, "skip", lambda line, columns: len(line.rest) * (1 + min(columns, line.indent())))
    count(FirstBlock, "_content", lambda block, text: len(text))
    return counts


@pytest.mark.parametrize(
    ("before", "repeated", "after"),
    [
        ("- ```\n  a\n", "字词", ""),  # outside of the item
        ("- ```\n  a\n", " ", "\n  b\n"),
        ("- a\n", "\t ", "\nb\n"),
        ("", ">", "x"),
        ("", "+ ", "x\n"),
        ("", "* ", "x\n"),
        ("```\n", "`", "x\n"),
        ("> ```\n", "> ", "x\n"),
        ("```\n", "a\r", "```"),
        ("", "> - a\n", "> - ```\n"),
    ],
)
def test_four_times_the_answer_is_four_times_the_work(
    before: str, repeated: str, after: str, handled: list[int]
) -> None:
    work = []
    for number in (1500, 6000):
        handled.clear()
        in_pieces(before + repeated * number + after, range(0, len(before + repeated * number + after), 4))
        work.append(sum(handled))
    assert work[1] < 5 * max(work[0], 1500)
