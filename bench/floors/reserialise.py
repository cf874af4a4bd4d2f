"""The floor of the history in `ask`: read a file, parse its lines with orjson, and serialise all of them again."""

import sys
from pathlib import Path

import orjson

orjson.dumps([orjson.loads(line) for line in Path(sys.argv[1]).read_bytes().split(b"\n")[:-1]])
