"""The recorded answers in data/captures, as (status, headers, body), and as replies of a scripted server."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.server import Reply

FOLDER = Path(__file__).parent / "data" / "captures"


@dataclass(frozen=True)
class Capture:
    """One recorded answer; `cut` if the recording broke off inside a chunk."""

    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool

    def reply(self) -> Reply:
        """The same answer again, byte for byte, framed as it was."""
        framing = {"transfer-encoding", "content-length", "connection", "keep-alive"}
        headers = {name: value for name, value in self.headers.items() if name not in framing}
        chunked = self.headers.get("transfer-encoding") == "chunked"
        return Reply([self.body], self.status, headers, "cut" if self.cut else "chunked" if chunked else "length")


def names() -> list[str]:
    """All recordings, as `llmock/plain.txt`."""
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*"))


def load(name: str) -> Capture:
    """The recording `name`; one that is a body alone is a 200 of the type that its name and beginning tell."""
    raw = (FOLDER / name).read_bytes()
    if not raw.startswith(b"HTTP/"):
        kind = "application/json" if name.endswith(".json") else "text/event-stream"
        return Capture(200, {"content-type": kind, "transfer-encoding": "chunked"}, raw, cut=False)
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    trailer = re.search(rb"rc=(\d+)\n?\Z", body)
    body = body[: trailer.start()] if trailer else body
    return Capture(int(first.split(" ")[1]), headers, body, cut=bool(trailer and trailer[1] != b"0"))
