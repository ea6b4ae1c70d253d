"""Scheduler configurations as files: defaults per way of installing, checks, comments."""

import argparse
import dataclasses
import math
import urllib.parse
from pathlib import Path
from typing import Any

import yaml

from api import names
from api.kubernetes import scheduler_config
from cli import clusters, reading
from cli.install import commented_yaml, in_place_files, scheduler_merge, scheduler_text
from cli.output import terminal
from extender import settings as extender_settings
from process.configuration import explained_error, settings
from process.runtime import entry

BESIDE, IN_PLACE = scheduler_text.BESIDE, scheduler_text.IN_PLACE
MODES = (BESIDE, IN_PLACE)
STOCK_PROFILE, PROFILE = scheduler_config.STOCK_PROFILE, scheduler_config.PROFILE

_FILTER_SLACK_SECONDS = 0.5
_BIND_SLACK_SECONDS = 5.0


class ChoiceError(explained_error.ExplainedError):
    """Arguments that no working configuration can be made of; says what to give instead."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rendered:
    """A configuration, the reasons that go with it, and what its owner should know."""

    document: dict[str, Any]
    comments: commented_yaml.Comments
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the file."""
        return commented_yaml.text(self.document, self.comments)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord render scheduler-config`."""
    parser.add_argument("--mode", choices=MODES, default=BESIDE, help="way of installing")
    clusters.add_target(parser, "file to write; standard output if absent")
    parser.add_argument(
        "--existing", type=Path, help="configuration to put the extender into, or its ConfigMap"
    )
    add_options(parser)
    parser.set_defaults(run=_run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what may differ between installations of the same mode."""
    add = parser.add_argument
    add("--extender-settings", type=Path, help="the extender's settings file, for its deadlines")
    add("--extender-url", help="where the scheduler calls the extender")
    add("--scheduler-name", action="append", help="profile to serve; may be repeated")
    add("--scheduler-kubeconfig", help="kubeconfig as the scheduler finds it; empty: in a pod")
    add("--qps", type=int, default=500, help="requests per second to the API server")
    add("--burst", type=int, default=0, help="burst of them; twice --qps if absent")
    add("--percentage-of-nodes-to-score", type=int, default=0, help="1 to 100; 0: by cluster size")
    add("--max-backoff", type=int, default=2, help="podMaxBackoffSeconds")
    add("--filter-timeout", type=int, help="seconds; by default from the extender's settings")
    add("--bind-timeout", type=int, help="seconds; by default from the extender's settings")
    add("--lease-namespace", help="namespace of the scheduler's lease")
    add("--lease-name", help="name of the scheduler's lease")
    add("--tls-ca", help="bundle by which the scheduler knows the extender")
    add("--tls-cert", help="certificate by which the extender knows the scheduler")
    add("--tls-key", help="key of --tls-cert")
    add("--tls-server-name", help="name in the extender's certificate, where not its address")


def chosen_configuration(chosen: argparse.Namespace) -> Rendered:
    """Return the configuration that the arguments ask for."""
    deadlines = _deadlines(chosen.extender_settings)
    options = _options(chosen, deadlines)
    if chosen.existing is None:
        document = scheduler_config.render(options)
        return Rendered(document, scheduler_text.comments(chosen.mode, deadlines))
    if chosen.scheduler_name:
        raise ChoiceError("--scheduler-name: with --existing, the profiles are those of the file")
    try:
        merged = scheduler_merge.merge(
            _parsed(chosen.existing), options, beside=chosen.mode == BESIDE
        )
    except scheduler_merge.MergeError as error:
        said = "\n".join(f"--existing {chosen.existing}: {line}" for line in error.problems)
        raise ChoiceError(said) from error
    reasons = scheduler_text.comments(
        chosen.mode, deadlines, others=merged.others, notes=merged.notes
    )
    return Rendered(merged.document, reasons, merged.notes)


def port(document: dict[str, Any]) -> int:
    """Return the port at which a configuration calls the extender."""
    url: str = document["extenders"][-1]["urlPrefix"]
    found = urllib.parse.urlsplit(url)
    if found.scheme != "https" or found.hostname != "127.0.0.1" or not found.port:
        raise ChoiceError(
            f"--extender-url {url}: in place the extender is called on its own node; give"
            " https://127.0.0.1:PORT"
        )
    return found.port


def _parsed(file: Path) -> Any:
    try:
        found = yaml.safe_load(file.read_bytes())
        return _unwrapped(found, file) if _is_config_map(found) else found
    except (OSError, yaml.YAMLError) as error:
        raise ChoiceError(f"--existing {file}: cannot be read: {reading.refusal(error)}") from error


def _is_config_map(found: Any) -> bool:
    return isinstance(found, dict) and found.get("kind") == "ConfigMap"


def _unwrapped(config_map: dict[str, Any], file: Path) -> Any:
    """Return the configuration that a ConfigMap such as koord-scheduler-config holds."""
    data = config_map.get("data")
    documents = [yaml.safe_load(str(text)) for text in (data or {}).values()]
    found = [
        document
        for document in documents
        if isinstance(document, dict) and document.get("kind") == scheduler_config.KIND
    ]
    if len(found) != 1:
        raise ChoiceError(
            f"--existing {file}: the ConfigMap holds {len(found)} of kind "
            f"{scheduler_config.KIND}; give one that holds one"
        )
    return found[0]


def _deadlines(file: Path | None) -> scheduler_text.Deadlines:
    model = extender_settings.Settings
    try:
        read = settings.load(model, file=file, environ={}, prefix="EXTENDER", flags=())
    except settings.SettingsError as error:
        raise ChoiceError(f"--extender-settings {file}: {error}") from error
    return scheduler_text.Deadlines(read.freshness.proof_seconds, read.bind.deadline_seconds)


def _options(
    chosen: argparse.Namespace, deadlines: scheduler_text.Deadlines
) -> scheduler_config.Options:
    _check_range("--qps", chosen.qps, 1, 100_000)
    _check_range("--burst", chosen.burst, 0, 200_000)
    _check_range("--max-backoff", chosen.max_backoff, 1, 3600)
    share = chosen.percentage_of_nodes_to_score
    _check_range("--percentage-of-nodes-to-score", share, 0, 100)
    beside = chosen.mode == BESIDE
    standard = _standard(beside)
    url = chosen.extender_url or standard.extender_url
    kubeconfig = chosen.scheduler_kubeconfig
    return dataclasses.replace(
        standard,
        extender_url=url,
        scheduler_names=_names(chosen.scheduler_name, beside) or standard.scheduler_names,
        filter_timeout_seconds=_longer(
            "--filter-timeout", chosen.filter_timeout, deadlines.proof, _FILTER_SLACK_SECONDS
        ),
        bind_timeout_seconds=_longer(
            "--bind-timeout", chosen.bind_timeout, deadlines.bind, _BIND_SLACK_SECONDS
        ),
        max_backoff_seconds=chosen.max_backoff,
        queries_per_second=chosen.qps,
        burst=chosen.burst,
        percentage_of_nodes_to_score=share,
        kubeconfig=standard.kubeconfig if kubeconfig is None else kubeconfig,
        lease=scheduler_config.Lease(
            chosen.lease_namespace or standard.lease.namespace,
            chosen.lease_name or standard.lease.name,
        ),
        tls=_tls(chosen, url, standard.tls),
    )


def _standard(beside: bool) -> scheduler_config.Options:
    if beside:
        return scheduler_config.Options(
            extender_url="http://127.0.0.1:9211",
            scheduler_names=(PROFILE,),
            leader_elect=True,
            lease=scheduler_config.Lease(names.NAMESPACE, PROFILE),
        )
    folder = f"{in_place_files.FOLDER}/scheduler"
    return scheduler_config.Options(
        extender_url="https://127.0.0.1:9211",
        scheduler_names=(STOCK_PROFILE, PROFILE),
        kubeconfig="/etc/kubernetes/scheduler.conf",
        leader_elect=True,
        tls=scheduler_config.ClientTls(
            f"{folder}/ca.crt", f"{folder}/client.crt", f"{folder}/client.key"
        ),
    )


def _names(chosen: list[str] | None, beside: bool) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(chosen or ()))
    if beside and STOCK_PROFILE in found:
        raise ChoiceError(
            f"--scheduler-name {STOCK_PROFILE}: beside the cluster's own scheduler both would place"
            f" the same pods; name another, such as {PROFILE}, or use --mode {IN_PLACE}"
        )
    return found


def _tls(
    chosen: argparse.Namespace, url: str, standard: scheduler_config.ClientTls | None
) -> scheduler_config.ClientTls | None:
    given = {
        "ca_file": chosen.tls_ca,
        "cert_file": chosen.tls_cert,
        "key_file": chosen.tls_key,
        "server_name": chosen.tls_server_name,
    }
    changes = {key: value for key, value in given.items() if value}
    if not url.startswith("https://"):
        if changes:
            raise ChoiceError(f"--extender-url {url}: TLS files are for an https:// address")
        return None
    if standard is None and not chosen.tls_ca:
        raise ChoiceError(
            f"--extender-url {url}: name the extender's authority with --tls-ca; without it"
            " kube-scheduler would not verify whom it talks to"
        )
    tls = dataclasses.replace(standard or scheduler_config.ClientTls(""), **changes)
    if bool(tls.cert_file) != bool(tls.key_file):
        raise ChoiceError("--tls-cert and --tls-key belong together; give both or none")
    return tls


def _longer(flag: str, given: int | None, works: float, slack: float) -> int:
    if given is None:
        return math.ceil(works + slack)
    if given <= works:
        raise ChoiceError(
            f"{flag} {given}: the extender itself works up to {works:g} s; give at least"
            f" {math.floor(works) + 1}, or lower the extender's limit"
        )
    return given


def _check_range(flag: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ChoiceError(f"{flag} {value}: give a number from {least} to {most}")


def _run(chosen: argparse.Namespace) -> int:
    try:
        rendered = chosen_configuration(chosen)
        text = rendered.text()
        if chosen.output is not None:
            chosen.output.write_text(text, encoding="utf-8")
    except (ChoiceError, OSError) as error:
        terminal.warn(f"koord render scheduler-config: {error}")
        return entry.BAD_SETTINGS
    for note in rendered.notes:
        terminal.warn(f"note: {note}")
    if chosen.output is None:
        terminal.page(text)
    return entry.OK
