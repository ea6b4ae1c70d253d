"""Issue and renew certificates in a folder, for development and for clusters that issue none."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from certs import issue, renewal, rotation, store


def main(argv: Sequence[str] | None = None) -> int:
    """Bring a folder up to date once; 0 done, 1 failed, 2 wrong arguments."""
    arguments = _parser().parse_args(argv)
    dns, ips = tuple(arguments.dns or ()), tuple(arguments.ip or ())
    if not dns and not ips:
        dns, ips = ("localhost",), ("127.0.0.1", "::1")
    subject = issue.Subject(arguments.name, dns, ips, client=arguments.client)
    try:
        keep, done = renewal.advance(
            store.load(arguments.dir), [subject], time.time(), rotation.Policy()
        )
        store.save(arguments.dir, keep)
    except (issue.CertificateError, store.StoreError) as error:
        sys.stderr.write(f"python -m certs: {error}\n")
        return 1
    for sentence in done or ("nothing was due",):
        sys.stdout.write(f"{sentence}\n")
    for file in (f"{arguments.name}.crt", f"{arguments.name}.key", renewal.BUNDLE):
        sys.stdout.write(f"{arguments.dir / file}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m certs", description=__doc__)
    parser.add_argument("--dir", type=Path, required=True, help="folder that holds the files")
    parser.add_argument("--name", default="tls", help="file name without ending (default: tls)")
    parser.add_argument("--dns", action="append", help="DNS name to serve; may be repeated")
    parser.add_argument("--ip", action="append", help="IP address to serve; may be repeated")
    parser.add_argument("--client", action="store_true", help="also good for identifying callers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
