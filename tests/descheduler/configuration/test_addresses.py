"""Addresses of servers: host and port, with what the reference fills in."""

import pytest

from descheduler.configuration import addresses


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "0.0.0.0:10251"),
        (":8080", "0.0.0.0:8080"),
        ("10.0.0.1", "10.0.0.1:10251"),
        ("::1", "[::1]:10251"),
        ("[::1]:9", "[::1]:9"),
        ("localhost:0", "localhost:0"),
        ("127.0.0.1:65535", "127.0.0.1:65535"),
    ],
)
def test_what_is_missing_is_filled_in(text, found):
    assert str(addresses.parse(text)) == found
    assert str(addresses.parse(found)) == found


@pytest.mark.parametrize(
    "text", ["localhost", "a:65536", "a:-1", "a b:1", "a:1:x", "999.1.1.1.:1x", "[n1:80", "n1]:80"]
)
def test_everything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"write host:port, such as 0\.0\.0\.0:10251"):
        addresses.parse(text)
