"""Where a redirect may lead: to the same origin, with a status that repeats the POST (RFC 9110, 15.4). No I/O."""

from urllib.parse import urljoin, urlsplit

from mino.errors import Reply, ServiceFailed
from mino.responses.exchange import Head
from mino.responses.failure import hide_key
from mino.responses.server import without_query


def redirected(url: str, head: Head, key: str | None) -> str:
    """The URL that the answer `head` of `url` names. Raises ServiceFailed if the conversation must not go there."""
    location = head.headers.get("location", "")
    try:
        target = urljoin(url, location)
        same = _origin(target) == _origin(url)
    except ValueError:
        target, same = location, False
    if same and head.status in (307, 308):
        return target
    failure = ServiceFailed(
        f"'{without_query(url)}' redirects ({head.status}) to '{hide_key(without_query(target), key)}'; "
        "the conversation is not sent there",
        "if that is the right server, name it with --base-url",
    )
    failure.reply = Reply(head.status)
    raise failure


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("a redirect with a user name")
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port
