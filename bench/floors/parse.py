"""The floor of `verify`: read a file in pieces, split it into lines, and let orjson parse each of them."""

import os
import sys

import orjson

fd = os.open(sys.argv[1], os.O_RDONLY)
rest = b""
while chunk := os.read(fd, 1 << 20):
    lines = (rest + chunk).split(b"\n")
    rest = lines.pop()
    for line in lines:
        orjson.loads(line)
