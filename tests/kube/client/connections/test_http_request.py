"""Requests as they leave."""

import pytest

from kube.client import access, errors
from kube.client.connections import http_request


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://10.0.0.1", ("10.0.0.1", 443, True, "", "10.0.0.1")),
        (
            "https://api.example.com:6443/",
            ("api.example.com", 6443, True, "", "api.example.com:6443"),
        ),
        ("http://[fd00::1]:8080", ("fd00::1", 8080, False, "", "[fd00::1]:8080")),
        ("https://host/k8s/clusters/c-1/", ("host", 443, True, "/k8s/clusters/c-1", "host")),
    ],
    ids=["address", "port", "IPv6", "path"],
)
def test_server(url: str, expected: tuple[str, int, bool, str, str]) -> None:
    assert http_request.server(url) == expected


@pytest.mark.parametrize("url", ["", "10.0.0.1:6443", "ftp://host", "https://:443"])
def test_what_is_no_server(url: str) -> None:
    with pytest.raises(ValueError, match="not the http"):
        http_request.server(url)


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("/api/v1/pods", {}, "/base/api/v1/pods"),
        ("/api/v1/pods/", {"limit": "1"}, "/base/api/v1/pods?limit=1"),
        ("/a/https:name:443/proxy", {}, "/base/a/https:name:443/proxy"),
        ("/a/b c\r\nX: y?z#", {}, "/base/a/b%20c%0D%0AX:%20y%3Fz%23"),
        (
            "/a",
            {"fieldSelector": "metadata.name=a b&c"},
            "/base/a?fieldSelector=metadata.name%3Da+b%26c",
        ),
    ],
    ids=["plain", "query", "colons", "hostile", "quoted query"],
)
def test_target(path: str, query: dict[str, str], expected: str) -> None:
    assert http_request.target("/base", path, query) == expected


def _write(writer: http_request.Writer, body: bytes | None, authorization: str) -> bytes:
    return writer.write(
        "POST",
        "/api/v1/pods",
        {},
        body=body,
        media=http_request.Media(),
        authorization=authorization,
    )


def test_whole_requests() -> None:
    writer = http_request.Writer(http_request.server("http://host:8080"), "koord")
    same = b"POST /api/v1/pods HTTP/1.1\r\nHost: host:8080\r\nUser-Agent: koord\r\n"
    wish = b"Accept: application/json\r\n"
    assert _write(writer, b"{}", "Bearer a") == (
        same + b"Authorization: Bearer a\r\n" + wish +
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )  # fmt: skip
    assert _write(writer, None, "Bearer b") == (
        same + b"Authorization: Bearer b\r\n" + wish + b"\r\n"
    )
    assert _write(writer, None, "") == same + wish + b"\r\n"


@pytest.mark.parametrize("token", ["Bearer a\r\nX: y", "Bearer \u00e9", "Bearer a\x00"])
def test_credentials_that_no_header_can_carry(token: str) -> None:
    writer = http_request.Writer(http_request.server("http://host"), "koord")
    with pytest.raises(ValueError, match="credential"):
        _write(writer, None, token)


def test_another_user_is_named_in_every_request() -> None:
    to = http_request.server("http://host")
    writer = http_request.Writer(
        to, "koord", access.Access("http://host", impersonate="jane").headers()
    )
    for authorization in ("", "Bearer t"):
        written = writer.write(
            "GET", "/api", {}, body=None, media=http_request.Media(), authorization=authorization
        )
        assert b"\r\nImpersonate-User: jane\r\n" in written


@pytest.mark.parametrize("user", ["a\r\nX: y", "jané"])
def test_a_user_that_no_header_can_carry_is_refused(user: str) -> None:
    with pytest.raises(errors.AccessError, match="--as"):
        access.Access("http://host", impersonate=user).headers()
