"""The floor of a streamed answer: a plain loop over the bytes of the socket, after the same imports as `ask` makes.

Each piece that the socket gives is split into lines, each data line parsed with orjson, and the text written to stdout.
The sizes of a chunked body stand on lines of their own, which are no data lines.
"""

import os
import socket
import sys
from urllib.parse import urlsplit

import click  # noqa: F401
import jsonschema_rs  # noqa: F401
import orjson
import requests  # noqa: F401

url = urlsplit(sys.argv[1])
connection = socket.create_connection((url.hostname, url.port or 80))
connection.sendall(
    f"POST {url.path}/responses HTTP/1.1\r\nhost: {url.netloc}\r\ncontent-length: 2\r\n\r\n{{}}".encode()
)
rest = b""
while piece := connection.recv(65536):
    lines = (rest + piece).split(b"\n")
    rest = lines.pop()
    text = ""
    for line in lines:
        if line.startswith(b"data: "):
            said = orjson.loads(line[6:])
            if said["type"] == "response.output_text.delta":
                text += said["delta"]
    if text:
        os.write(1, text.encode())
