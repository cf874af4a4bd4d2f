"""A turn as CommonMark, for people to read."""

import re

_LINE_ENDING = re.compile(r"\r\n|\r|\n")


def format_turn(title: str, question: str, answer: str) -> str:
    """A heading, and both texts in block quotes.

    A block quote ends every construct inside it (CommonMark section 5.1), so that no heading, open fence or comment
    in a text can swallow or imitate what comes after it.
    """
    return f"## {title}\n\n**You**\n\n{_quote(question)}\n**Assistant**\n\n{_quote(answer)}"


def _quote(text: str) -> str:
    # A lone carriage return ends a line too (CommonMark section 2.1).
    return "".join(f"> {line}".rstrip(" ") + "\n" for line in _LINE_ENDING.split(text.rstrip("\r\n")))
