"""Certificates with which kube-scheduler and the extender prove themselves to each other."""

import dataclasses
import json
import time
from pathlib import Path

from api.kubernetes import scheduler_config
from certs import issue
from cli.install import in_place_files


@dataclasses.dataclass(frozen=True, slots=True)
class MutualTls:
    """What both sides are configured with: the same as `koord render in-place` writes."""

    flags: tuple[str, ...]
    """Arguments of the extender."""
    client: scheduler_config.ClientTls
    """What the configuration of kube-scheduler names."""


def made(folder: Path) -> MutualTls:
    """Write an authority for each side, and a certificate of each, into a new folder."""
    folder.mkdir()
    now = time.time()
    servers, callers = (issue.authority(name, now) for name in ("bench-extender", "bench-callers"))
    name = in_place_files.SCHEDULER_NAME
    pair = issue.leaf(servers, issue.Subject("koord-extender", ips=("127.0.0.1",)), now)
    shown = issue.leaf(callers, issue.Subject(name, dns=(name,), client=True), now)
    contents = {
        "ca.crt": servers.certificate,
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
        "client-ca.crt": callers.certificate,
        "client.crt": shown.certificate,
        "client.key": shown.key,
    }
    for file, content in contents.items():
        (folder / file).touch(mode=0o600)
        (folder / file).write_bytes(content)
    return there(folder)


def there(folder: Path) -> MutualTls:
    """Return how the files that `made` has written are used."""
    flags = (
        f"--server.tls.certFile={folder / 'tls.crt'}",
        f"--server.tls.keyFile={folder / 'tls.key'}",
        f"--server.tls.clientCaFile={folder / 'client-ca.crt'}",
        f"--server.tls.clientNames={json.dumps([in_place_files.SCHEDULER_NAME])}",
    )
    paths = (str(folder / name) for name in ("ca.crt", "client.crt", "client.key"))
    return MutualTls(flags, scheduler_config.ClientTls(*paths))
