"""Reads the man pages and the README: their sections, tags, examples and command lines."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANUAL = sorted((ROOT / "man").iterdir())
TEXTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]

_FONTS = ("B", "I", "BI", "BR", "IB", "IR", "RB", "RI")
_ESCAPES = {r"\-": "-", r"\e": "\\", r"\&": "", r"\~": " ", r"\(aq": "'", r"\(dq": '"', r"\(bu": "*", r"\(dg": "+"}


@dataclass(frozen=True)
class Example:
    """Shell commands that a page or the README shows, and what a comment before them says that they need."""

    where: str
    script: str
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Page:
    """A man page: the source lines of each section, and of each subsection as `SECTION/subsection`."""

    name: str
    number: str
    lines: list[str]
    sections: dict[str, list[str]]

    def tags(self, section: str) -> list[str]:
        """The tags of the paragraphs in `section`, its subsections included."""
        lines = [line for name, body in self.sections.items() if name.split("/")[0] == section for line in body]
        return _tags(lines if "/" not in section else self.sections.get(section, []))

    def paragraphs(self, section: str) -> dict[str, str]:
        """The text below each tag of `section`."""
        text: dict[str, list[str]] = {}
        lines = iter(self.sections[section])
        body: list[str] = []
        for line in lines:
            if line.startswith(".TP"):
                body = text.setdefault(plain(next(lines)), [])
            elif line.startswith((".PP", ".SH", ".SS")):
                body = []
            else:
                body.append(plain(line))
        return {tag: " ".join(words) for tag, words in text.items()}

    def text(self, section: str) -> str:
        """The words of `section`, a line for each source line."""
        return "\n".join(plain(line) for line in self.sections[section])

    def blocks(self, section: str, start: str = ".EX", end: str = ".EE") -> Iterator[tuple[str, str]]:
        """The literal blocks of `section`, each with the comment that stands before it."""
        comment = ""
        body: list[str] | None = None
        for line in self.sections[section]:
            if line == end and body is not None:
                yield comment, "\n".join(body) + "\n"
                comment, body = "", None
            elif body is not None:
                body.append(plain(line))
            elif line == start:
                body = []
            elif line.startswith(r".\" "):
                comment = line[4:]

    def examples(self) -> list[Example]:
        """The commands in EXAMPLES."""
        return [Example(by_name(self), script, _needs(comment)) for comment, script in self.blocks("EXAMPLES")]


def read_page(path: Path) -> Page:
    """The man page at `path`."""
    lines = path.read_text().splitlines()
    sections: dict[str, list[str]] = {}
    section = ""
    body: list[str] = []
    for line in lines:
        if line.startswith(".SH "):
            section = line[4:].strip('"')
            body = sections.setdefault(section, [])
        elif line.startswith(".SS "):
            body = sections.setdefault(f"{section}/{plain(line[4:])}", [])
        else:
            body.append(line)
    return Page(path.stem, path.suffix[1:], lines, sections)


def pages() -> list[Page]:
    """All man pages."""
    return [read_page(path) for path in MANUAL]


def page(name: str) -> Page:
    """The man page `name`, such as mino-ask."""
    return next(each for each in pages() if each.name == name)


def by_name(page: Page) -> str:
    """The name of the page's file."""
    return f"{page.name}.{page.number}"


def plain(line: str) -> str:
    """One line of source as the reader sees it; other macros than those of fonts are nothing."""
    if line.startswith("."):
        macro, _, rest = line[1:].partition(" ")
        if macro not in _FONTS:
            return ""
        words = re.findall(r'"([^"]*)"|(\S+)', rest)
        line = ("" if len(macro) == 2 else " ").join(quoted or bare for quoted, bare in words)
    line = re.sub(r"\\f[BIRP]", "", line)
    return re.sub(r"\\\(..|\\.", lambda match: _ESCAPES[match[0]], line)


def _tags(lines: list[str]) -> list[str]:
    return [plain(tag) for macro, tag in pairwise(lines) if macro.startswith(".TP")]


def markdown_blocks(text: str, kind: str) -> list[tuple[str, str]]:
    """The code blocks of `kind`, each with the HTML comment before it."""
    pattern = rf"(?:<!-- ([^\n]*) -->\n)?```{kind}\n(.*?)```\n"
    return [(match[1] or "", match[2]) for match in re.finditer(pattern, text, re.DOTALL)]


def readme_examples() -> list[Example]:
    """The README's shell blocks, but for the first two, which install."""
    blocks = markdown_blocks((ROOT / "README.md").read_text(), "sh")[2:]
    return [Example("README.md", script, _needs(comment)) for comment, script in blocks]


def _needs(comment: str) -> frozenset[str]:
    return frozenset(comment.removeprefix("needs:").split())


_BEFORE_A_COMMAND = {"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec"}


def mino_commands(script: str) -> Iterator[list[str]]:
    """The arguments of every `mino` in a shell script."""
    lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ;\n"), posix=True, punctuation_chars=True)
    segment: list[str] = []
    for token in [*lexer, ";"]:
        if token and set(token) <= set(lexer.punctuation_chars):
            yield from _as_mino(segment)
            segment = []
        else:
            segment.append(token)


def _as_mino(words: list[str]) -> Iterator[list[str]]:
    rest = list(words)
    while rest and (rest[0] in _BEFORE_A_COMMAND or re.fullmatch(r"\w+=.*", rest[0], re.DOTALL)):
        rest.pop(0)
    if rest and (rest[0] == "mino" or rest[0].endswith("/mino")):
        yield rest[1:]
