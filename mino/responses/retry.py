"""Whether a failed request is worth another attempt, and after how long. No I/O.

The rules are those of the official clients: 408, 409, 429 and 5xx; `retry-after-ms` and `Retry-After` (RFC 9110,
section 10.2.3) up to two minutes, else 0.5, 1, 2 … 8 seconds; `x-should-retry` overrides.
"""

import math
import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from mino.responses.failure import ServerError

LONGEST_WAIT = 120.0


def is_worth_retrying(status: int, headers: Mapping[str, str], server_error: ServerError) -> bool:
    """Whether the same request may succeed later; an empty account or too long a conversation does not change."""
    if server_error.out_of_quota or server_error.too_long:
        return False
    said = headers.get("x-should-retry", "").strip().lower()
    if said in ("true", "false"):
        return said == "true"
    return status in (408, 409, 429) or status >= 500


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks to wait; None if it says nothing usable."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    seconds = milliseconds / 1000 if milliseconds is not None else _retry_after(headers.get("retry-after", ""))
    return seconds if seconds is not None and math.isfinite(seconds) and seconds > 0 else None


def own_wait(failures: int) -> float:
    """The seconds to wait after the first, second … failure; random, so that many clients do not return at once."""
    return min(0.5 * 2.0 ** min(failures - 1, 10), 8.0) * random.uniform(0.75, 1.0)


def _retry_after(value: str) -> float | None:
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        return parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None
