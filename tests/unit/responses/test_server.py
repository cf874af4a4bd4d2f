"""The address and the key of a server, checked before anything is sent."""

import re

import pytest

from mino.errors import Misconfigured
from mino.responses.server import check_base_url, endpoint, is_loopback, without_query


@pytest.mark.parametrize(
    ("url", "used"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("https://api.deepseek.com/", "https://api.deepseek.com"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:8080/v1/", "http://[::1]:8080/v1"),
        ("HTTP://Host/v1//", "HTTP://Host/v1/"),
        ("https://bücher.example/v1", "https://bücher.example/v1"),
        ("https://host/a@b/v1", "https://host/a@b/v1"),
    ],
)
def test_base_url_is_used_as_given_without_one_trailing_slash(url: str, used: str) -> None:
    assert check_base_url(url) == used


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080/v1",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "http:///v1",
        "http://:8080/v1",
        "http://host:port/v1",
        "http://host:99999/v1",
        "http://[::1/v1",
        "http://[zz]/v1",
        "http://a..b/v1",
        "http://" + "a" * 64 + ".example/v1",
        "http://ho st/v1",
        "http://host/v1\n",
        "http://host/\x1b[0m",
        "http://host\\@other/v1",
        "http://host/v1#x",
        "http://ho\ud83dst/v1",
    ],
)
def test_base_url_that_cannot_be(url: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        check_base_url(url)
    assert "base URL" in caught.value.message
    assert not re.search("[\n\x1b]", caught.value.message)


@pytest.mark.parametrize(
    "url", ["http://bob:hunter2@host/v1", "https://hunter2@host", "bob:hunter2@host/v1", "ftp://bob:hunter2@host"]
)
def test_base_url_with_a_password_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        check_base_url(url)
    assert caught.value.status == 78
    assert "hunter2" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "localhost.example", "10.0.0.1", "0.0.0.0", "::2", "128.0.0.1", "127.0.0.1.example"]
)
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("base_url", "endpoint_url"),
    [
        ("https://host/v1", "https://host/v1/responses"),
        ("https://host/v1/", "https://host/v1/responses"),
        ("https://host", "https://host/responses"),
        (
            "https://r.azure.com/openai?api-version=2025-04-01-preview",
            "https://r.azure.com/openai/responses?api-version=2025-04-01-preview",
        ),
        ("https://host/v1/?a=1&b=%2F/", "https://host/v1/responses?a=1&b=%2F/"),
        ("https://host/v1?", "https://host/v1/responses?"),
    ],
)
def test_a_query_stays_at_the_end_and_is_not_shown(base_url: str, endpoint_url: str) -> None:
    assert endpoint(base_url, "responses") == endpoint_url
    assert without_query(endpoint_url) == endpoint_url.partition("?")[0]


def test_a_query_is_in_no_message() -> None:
    with pytest.raises(Misconfigured) as caught:
        check_base_url("ftp://host/v1?key=secret")
    assert "secret" not in caught.value.message + caught.value.hint
