"""`python -m mino`, for a plain checkout."""

import sys

from mino.cli import main

sys.exit(main())
