"""The server that is asked: its address and its key, checked before anything is sent to it. No I/O."""

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from mino.errors import Misconfigured
from mino.responses.failure import key_hint
from mino.text import one_line


@dataclass(frozen=True, slots=True)
class Server:
    """The server to ask. `key_source` names where the key came from; `timeout` is the idle limit in seconds.

    `context_tokens` is how many tokens question and answer may have together, if that is known; `output_tokens` how
    many an answer may have if the request does not say it. With `has_grammars` it is llama.cpp, which makes an answer
    fit the schema in its own field `json_schema`, and ignores `text.format`.
    """

    base_url: str
    key: str | None = field(repr=False)
    key_source: str
    timeout: float
    retries: int
    context_tokens: int | None = None
    output_tokens: int | None = None
    has_grammars: bool = False


def check_base_url(url: str) -> str:
    """`url` without one slash at the end of its path.

    Raises Misconfigured if no request can go there; never repeats a password.
    """
    authority = url.partition("://")[2].partition("/")[0] or url.partition("/")[0]
    if "@" in authority:
        raise Misconfigured("the base URL has a user name or password in it", "remove it, and export OPENAI_API_KEY=…")
    quoted = f"the base URL '{one_line(without_query(url))}'"
    if re.search(r"[\s\x00-\x1f\x7f\\]", url):
        raise Misconfigured(f"{quoted} contains white space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        if host:
            host.encode("idna")
    except ValueError as error:  # UnicodeError is one
        raise Misconfigured(f"{quoted} is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Misconfigured(f"{quoted} does not begin with http:// or https:// and a host", "--base-url http://…/v1")
    if parts.fragment:
        raise Misconfigured(f"{quoted} has a fragment, which is never sent", "remove it")
    base, mark, query = url.partition("?")
    return base.removesuffix("/") + mark + query


def endpoint(base_url: str, path: str) -> str:
    """The URL of `path` under `base_url`, whose query stays at the end. Raises Misconfigured."""
    base, mark, query = check_base_url(base_url).partition("?")
    return f"{base}/{path}{mark}{query}"


def without_query(url: str) -> str:
    """`url` as messages show it: a query may hold what nobody should read."""
    return url.partition("?")[0]


def check_key(key: str | None, source: str) -> str | None:
    """`key` if a header can hold it (RFC 6750 allows less). Raises Misconfigured, without the key in any message."""
    for character in key or "":
        if character in "\r\n":
            raise Misconfigured(f"the key from {source} has more than one line", key_hint(source))
        if character > "\xff" or not character.isprintable() or character.isspace():
            kind = "white space" if character.isspace() else "a character that a key cannot have"
            raise Misconfigured(f"the key from {source} has {kind} in it", key_hint(source))
    return key or None


def is_loopback(host: str) -> bool:
    """Whether `host`, as written in a URL, is this machine: localhost, 127.0.0.0/8 or ::1."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"
