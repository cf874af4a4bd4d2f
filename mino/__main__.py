"""`python -m mino`, for a plain checkout."""

from mino.cli import main

main()
