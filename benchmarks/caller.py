"""Calls one path again and again over one kept connection, as a scheduler does.

Reads length-prefixed bodies from a file, prints the latencies in microseconds as JSON.
"""

import http.client
import json
import sys
import time
import urllib.parse
from pathlib import Path


def main(url: str, bodies: str, warm: int) -> None:
    """Post every body once, in order, and report all but the first calls."""
    parts = urllib.parse.urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    data = Path(bodies).read_bytes()
    taken = []
    at = 0
    headers = {"Content-Type": "application/json"}
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        body = data[at + 4 : at + 4 + size]
        at += 4 + size
        started = time.perf_counter()
        connection.request("POST", parts.path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        taken.append((time.perf_counter() - started) * 1e6)
        if answer.status != 200 or b'"Error":"e' in text or b'"Error":"b' in text:
            raise SystemExit(f"{answer.status} {text[:300]!r}")
    print(json.dumps(taken[warm:]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
