"""`koord render in-place`: every file for a control-plane node, and the steps to put them there."""

import argparse
import datetime
from pathlib import Path

from certs import issue, renewal, rotation, store
from cli import clusters
from cli.install import in_place_files as files
from cli.install import in_place_steps, scheduler_file
from cli.output import terminal
from extender.scoring import profiles
from process.runtime import clock as clocks
from process.runtime import entry

_DAY = 24 * 3600.0
_AUTHORITY_SECONDS = 3 * 365 * _DAY
_OVERLAP_SECONDS = 30 * _DAY
_LEAST_DAYS, _MOST_DAYS = 120, 150
_SERVER = issue.Subject("extender", ips=("127.0.0.1", "::1"), dns=("localhost",))
# The name that the extender asks for; it is not an address of the scheduler.
_CLIENT = issue.Subject("scheduler", dns=(files.SCHEDULER_NAME,), client=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord render in-place`."""
    add = parser.add_argument
    clusters.add_target(parser, "folder to write to; run again to renew", required=True)
    add("--image", required=True, help="image of Koord, with its registry and tag")
    add("--server", required=True, help="API server; see server in /etc/kubernetes/scheduler.conf")
    clusters.add_installation(parser)
    add("--scheduler-version", default="", help="version of kube-scheduler, such as 1.36")
    add("--existing", type=Path, help="the scheduler's present configuration, if it has one")
    add("--certificate-days", type=int, default=120, help="life of a certificate, 120 to 150")
    add("--health-port", type=int, default=9212, help="port of probes and metrics")
    add("--health-host", default="127.0.0.1", help="where probes and metrics are served")
    scheduler_file.add_options(parser)
    parser.set_defaults(run=_run, mode=scheduler_file.IN_PLACE)


def _run(chosen: argparse.Namespace) -> int:
    try:
        steps, notes = _written(chosen)
    except (
        scheduler_file.ChoiceError,
        issue.CertificateError,
        store.StoreError,
        OSError,
    ) as error:
        terminal.warn(f"koord render in-place: {error}")
        return entry.BAD_SETTINGS
    for note in notes:
        terminal.warn(f"note: {note}")
    terminal.page(steps)
    return entry.OK


def _written(chosen: argparse.Namespace) -> tuple[str, tuple[str, ...]]:
    days = chosen.certificate_days
    if not _LEAST_DAYS <= days <= _MOST_DAYS:
        raise scheduler_file.ChoiceError(
            f"--certificate-days {days}: give a number from {_LEAST_DAYS} to {_MOST_DAYS}"
        )
    if not chosen.server.startswith("https://"):
        raise scheduler_file.ChoiceError(
            f"--server {chosen.server}: give the address of the API server, as in https://10.0.0.1:6443"
        )
    configuration = scheduler_file.chosen_configuration(chosen)
    node = files.Node(
        chosen.image,
        chosen.server,
        chosen.koord_namespace,
        scheduler_file.port(configuration.document),
        chosen.health_port,
        chosen.health_host,
        _version(chosen.scheduler_version),
    )
    policy = rotation.Policy(_AUTHORITY_SECONDS, days * _DAY, _OVERLAP_SECONDS)
    keep, done, due = _certificates(chosen.output / "pki", policy)
    for path, content, mode in _tree(node, configuration.text(), keep):
        _write(chosen.output / path, content, mode)
    steps = in_place_steps.text(
        node,
        output=str(chosen.output),
        done=f"Certificates were issued: {'; '.join(done)}." if done else "No certificate was due.",
        due=due,
        lives=(policy.authority_seconds, policy.leaf_seconds),
    )
    _write(chosen.output / "STEPS.md", steps.encode(), 0o644)
    return steps, configuration.notes


def _version(written: str) -> str:
    if written and profiles.minor_of(written) is None:
        raise scheduler_file.ChoiceError(
            f"--scheduler-version {written}: give a version of Kubernetes such as 1.36 or v1.36.3"
        )
    return written


def _certificates(
    folder: Path, policy: rotation.Policy
) -> tuple[renewal.Keep, tuple[str, ...], str]:
    now = clocks.SystemClock().now()
    subjects = [_SERVER, _CLIENT]
    keep, done = renewal.advance(store.load(folder), subjects, now, policy)
    store.save(folder, keep)
    due = min(rotation.renew_at(leaf.begins, leaf.ends) for leaf in keep.state.leaves)
    day = datetime.datetime.fromtimestamp(due, tz=datetime.UTC)
    return keep, done, day.strftime("%d %B %Y")


def _tree(node: files.Node, configuration: str, keep: renewal.Keep) -> list[tuple[str, bytes, int]]:
    """Return every file with its path in the output folder and its mode."""
    extender, scheduler = (f"node{files.FOLDER}/{name}" for name in ("extender", "scheduler"))
    server, client = keep.leaves[_SERVER.name], keep.leaves[_CLIENT.name]
    return [
        (f"{extender}/settings.yaml", files.settings(node).encode(), 0o644),
        (f"{extender}/kubeconfig", files.kubeconfig(node).encode(), 0o644),
        (f"{extender}/tls.crt", server.certificate, 0o644),
        (f"{extender}/tls.key", server.key, 0o600),
        (f"{extender}/{files.CLIENT_CA}", keep.bundle, 0o644),
        (f"{scheduler}/config.yaml", configuration.encode(), 0o644),
        (f"{extender}/{files.SCHEDULER_CONFIG}", configuration.encode(), 0o644),
        (f"{scheduler}/ca.crt", keep.bundle, 0o644),
        (f"{scheduler}/client.crt", client.certificate, 0o644),
        (f"{scheduler}/client.key", client.key, 0o600),
        (f"node{files.MANIFESTS}/{files.ACCOUNT}.yaml", files.static_pod(node).encode(), 0o644),
        (f"patches/{files.PATCH}", files.scheduler_patch().encode(), 0o644),
        ("cluster/login.yaml", files.login_secret(node).encode(), 0o644),
    ]


def _write(file: Path, content: bytes, mode: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=mode)
    file.chmod(mode)
    file.write_bytes(content)
