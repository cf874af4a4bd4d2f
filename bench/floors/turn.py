"""The floor of `ask`: import what it must import, and append to a file twice, with a sync after each."""

import os
import sys

import click  # noqa: F401
import jsonschema_rs  # noqa: F401
import orjson  # noqa: F401
import requests  # noqa: F401

fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
for length in (200, 800):
    os.write(fd, b"x" * length)
    os.fsync(fd)
