"""The first fenced code block of an answer, while it arrives (CommonMark 0.31, section 4.5). Text in, text out.

Block quotes and list items around it are followed, because models put code into lists. HTML blocks are not: a fence
inside one is a fence here, because nobody who asks for the code would want it otherwise. The time is linear in the
length of the answer, because a model that repeats itself may write any one character without end.
"""

import re
from typing import NamedTuple

_OPENING = re.compile(r"(?P<run>`{3,})[^`]*$|(?P<waves>~{3,}).*$")
_MARKER = re.compile(r"(?:[-+*]|(?P<number>[0-9]{1,9})[.)])(?=[ \t]|$)")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*$")  # makes the paragraph above it a heading
_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_QUOTE = 0  # a container: a block quote, or of a list item the columns that its content is indented by
_DEEPEST = 100  # containers in each other; without a bound a line of `>` would take the square of its length


class _Fence(NamedTuple):
    mark: str
    length: int
    indent: int  # columns, which the lines of the content lose


class _Line:
    """A line, of which containers take columns from the left; a tab reaches to the next column that 4 divides."""

    def __init__(self, text: str) -> None:
        self.rest = text
        self._column = 0

    def indent(self) -> int:
        """The columns of white space at the beginning of the rest."""
        column = self._column
        for character in self.rest:
            if character == " ":
                column += 1
            elif character == "\t":
                column += 4 - column % 4
            else:
                break
        return column - self._column

    def is_blank(self) -> bool:
        return not self.rest.strip(" \t")

    def skip(self, columns: int) -> None:
        """Take at most so many columns of white space; what is left of a tab is blanks."""
        while columns > 0 and self.rest[:1] in (" ", "\t"):
            width = 1 if self.rest[0] == " " else 4 - self._column % 4
            self.rest = " " * max(0, width - columns) + self.rest[1:]
            self._column += min(width, columns)
            columns -= width

    def skip_blank(self) -> None:
        """Take all of a blank line at once: each column that `skip` takes is a copy of the rest."""
        self._column += self.indent()
        self.rest = ""

    def take(self, length: int) -> None:
        """Take so many characters that are no white space."""
        self.rest = self.rest[length:]
        self._column += length


def _is_rule(text: str) -> bool:
    """Whether `text` is a thematic break. A regular expression would take a hundred bytes for each mark."""
    marks = text.replace(" ", "").replace("\t", "")
    return len(marks) >= 3 and marks[0] in "*-_" and not marks.strip(marks[0])


class FirstBlock:
    """Takes an answer piece by piece, and gives the content of its first fenced code block as soon as it is certain.

    The content has `\\n` at the end of its lines. A block that is not closed runs to the end of the answer, or of the
    list item or quotation that it is in.
    """

    def __init__(self) -> None:
        self.found = False  # a block was opened
        self.over = False  # it was closed
        self._pieces: list[str] = []  # of the line that has not ended
        self._after_cr = False
        self._is_certain = False  # this line is content, and its beginning was given
        self._containers: list[int] = []
        self._fence: _Fence | None = None
        self._in_paragraph = False
        self._item_is_empty = False  # the innermost list item has had no content yet

    def feed(self, text: str) -> str:
        """The content of the block that `text` makes certain."""
        if self._after_cr and text:
            self._after_cr = False
            text = text.removeprefix("\n")
        if self.over or not text:
            return ""
        self._after_cr = text.endswith("\r")
        *ended, last = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        given = [self._end_line(piece) for piece in ended]
        if last and not self.over:
            given.append(self._continue(last))
        return "".join(given)

    def end(self) -> str:
        """The rest, at the end of the answer."""
        if not self._pieces or self.over:
            return ""
        return self._end_line("").removesuffix("\n")

    def _end_line(self, piece: str) -> str:
        if self.over:
            return ""
        line, self._pieces = "".join([*self._pieces, piece]), []
        if self._is_certain:
            self._is_certain = False
            return piece + "\n"
        if self._fence:
            content = self._content(line)
            self.over = content is None
            return "" if content is None else content + "\n"
        self._look(_Line(line))
        return ""

    def _continue(self, piece: str) -> str:
        """A piece of a line that goes on; given at once if it is content whatever follows."""
        if self._is_certain:
            return piece
        self._pieces.append(piece)
        fence = self._fence
        if not fence or not piece.strip(f" \t>{fence.mark}"):  # it may still be a closing fence, or of a container
            return ""
        content = self._content("".join(self._pieces))
        if content is None:  # it has left a container, whatever follows
            self.over = True
            return ""
        self._pieces, self._is_certain = [""], True
        return content

    def _content(self, text: str) -> str | None:
        """The line `text` of the block without containers and indentation; None if the block ends before it."""
        line, fence = _Line(text), self._fence
        assert fence
        if self._match(line) < len(self._containers):
            return None
        run = line.rest.strip(" \t") if line.indent() < 4 else ""
        if len(run) >= fence.length and not run.strip(fence.mark):
            return None
        line.skip(fence.indent)
        return line.rest

    def _match(self, line: _Line) -> int:
        """How many of the containers go on in `line`, whose markers and indentation it loses."""
        for number, columns in enumerate(self._containers):
            if columns == _QUOTE:
                if line.indent() > 3 or line.rest.lstrip(" \t")[:1] != ">":
                    return number
                self._take_quote(line)
            elif line.is_blank():
                line.skip_blank()  # as the reference implementations do
            elif line.indent() >= columns:
                line.skip(columns)
            else:
                return number
        return len(self._containers)

    def _take_quote(self, line: _Line) -> None:
        line.skip(3)
        line.take(1)
        line.skip(1)

    def _look(self, line: _Line) -> None:
        """Look at a line outside of a block: it may open containers, and a block."""
        was_empty, self._item_is_empty = self._item_is_empty, False
        matched = self._match(line)
        if line.is_blank():
            # A list item may begin with one blank line, but not with two.
            del self._containers[matched - (was_empty and matched == len(self._containers)) :]
            self._in_paragraph = False
            return
        # What continues a paragraph needs no markers (section 5.1, laziness), unless it begins something itself.
        open_before = self._containers[:]
        del self._containers[matched:]
        may_interrupt = self._in_paragraph and matched == len(open_before)
        begun = False
        while line.indent() < 4 and self._open_container(line, may_interrupt and not begun):
            begun = True
            if line.is_blank():
                self._in_paragraph = False
                self._item_is_empty = self._containers[-1] != _QUOTE
                return
        text = line.rest.lstrip(" \t")
        if line.indent() < 4:
            if opening := _OPENING.match(text):
                run = opening["run"] or opening["waves"]
                self._fence = _Fence(run[0], len(run), line.indent())
                self.found = True
                return
            if _HEADING.match(text) or _is_rule(text) or (may_interrupt and not begun and _UNDERLINE.match(text)):
                self._in_paragraph = False
                return
        elif not self._in_paragraph or begun:
            self._in_paragraph = False  # indented code
            return
        if self._in_paragraph and not begun:
            self._containers = open_before
        self._in_paragraph = True

    def _open_container(self, line: _Line, interrupts: bool) -> bool:
        """Whether a block quote or a list item begins here; it is then open, and `line` is without its marker."""
        if len(self._containers) == _DEEPEST:
            return False
        text = line.rest.lstrip(" \t")
        if text.startswith(">"):
            self._take_quote(line)
            self._containers.append(_QUOTE)
            return True
        marker = _MARKER.match(text)
        if not marker or _is_rule(text):
            return False
        is_blank = not text[marker.end() :].strip(" \t")
        if interrupts and (is_blank or (marker["number"] or "1").lstrip("0") not in ("1",)):
            return False
        columns = line.indent() + marker.end()
        line.skip(3)
        line.take(marker.end())
        blanks = line.indent()
        blanks = 1 if is_blank or blanks > 4 else blanks
        line.skip(blanks)
        self._containers.append(columns + blanks)
        return True


def first_block(text: str) -> str | None:
    """The content of the first fenced code block of `text`; None if there is none."""
    block = FirstBlock()
    content = block.feed(text) + block.end()
    return content if block.found else None
