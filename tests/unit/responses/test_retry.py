"""When a request is worth another attempt, and after how long."""

import time
from email.utils import formatdate

import pytest
from requests.structures import CaseInsensitiveDict

from mino.responses.failure import ServerError
from mino.responses.retry import asked_wait, is_worth_retrying, own_wait


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529, 599])
def test_statuses_worth_retrying(status: int) -> None:
    assert is_worth_retrying(status, {}, ServerError("x"))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 304])
def test_statuses_not_worth_retrying(status: int) -> None:
    assert not is_worth_retrying(status, {}, ServerError("x"))


def test_x_should_retry_is_obeyed() -> None:
    assert not is_worth_retrying(500, CaseInsensitiveDict({"X-Should-Retry": "False"}), ServerError("x"))
    assert is_worth_retrying(400, {"x-should-retry": "true"}, ServerError("x"))
    assert is_worth_retrying(500, {"x-should-retry": "perhaps"}, ServerError("x"))


@pytest.mark.parametrize(
    "server_error", [ServerError(code="insufficient_quota"), ServerError(kind="insufficient_quota")]
)
def test_insufficient_quota_is_not_retried(server_error: ServerError) -> None:
    assert not is_worth_retrying(429, {}, server_error)
    assert not is_worth_retrying(429, {"x-should-retry": "true"}, server_error)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "3", "retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "nonsense", "retry-after": "3"}, 3),
        ({"retry-after": "3600"}, 3600),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 99 Foo 2026 99:99:99 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_asked_wait(headers: dict[str, str], wait: float | None) -> None:
    assert asked_wait(headers) == wait


def test_asked_wait_until_a_date() -> None:
    wait = asked_wait({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert wait is not None
    assert 55 < wait <= 60


def test_own_wait_doubles_up_to_eight_seconds_and_is_uneven() -> None:
    for failures, most in ((1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (9, 8.0), (5000, 8.0)):
        waits = [own_wait(failures) for _ in range(50)]
        assert all(most * 0.75 <= wait <= most for wait in waits)
        assert len(set(waits)) > 1
