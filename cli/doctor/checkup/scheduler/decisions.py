"""Whether filter may choose nodes, and whether what it goes by is the scheduler that calls it."""

from collections.abc import Iterator, Sequence
from typing import Final

import yaml

from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from extender.scoring import profiles

LEFT = Trap(
    "decisions.left", Severity.INFO,
    "Filter leaves every choice among nodes to kube-scheduler, which costs throughput",
    "see `When filter answers one node` in docs/scheduler.md",
)  # fmt: skip
DIFFERS = Trap(
    "decisions.differs", Severity.WARNING,
    "The extender goes by another kube-scheduler than the one that calls it: it may choose other "
    "nodes than that would",
    "give scheduler.version and scheduler.arguments of the extender's settings as the Deployment "
    "has them, and restart both",
)  # fmt: skip

_CONTAINER: Final = "kube-scheduler"
_GATES: Final = "--feature-gates"


def run(known: facts.Facts) -> Iterator[findings.Finding]:
    """Check our own scheduler; what an extender in place goes by is on its node."""
    settings = facts.settings(facts.given(known.config_maps), "extender")
    chosen = facts.section(settings, "scheduler")
    if not chosen.get("configFile") or chosen.get("decide") == "never":
        return
    version = str(chosen.get("version") or "")
    arguments = tuple(map(str, facts.stated(chosen, "arguments")))
    for config in facts.given(known.scheduler_configs):
        if config.beside and not isinstance(config.document, facts.Unknown):
            yield from _left(config, config.document, version, arguments, chosen)
    for workload in facts.given(known.deployments):
        if facts.is_ours(workload) and facts.component(workload) == "scheduler":
            yield from _differs(workload, version, arguments)


def _left(
    config: facts.SchedulerConfig,
    document: facts.Raw,
    version: str,
    arguments: Sequence[str],
    chosen: facts.Raw,
) -> Iterator[findings.Finding]:
    url = str(chosen.get("extenderUrl") or "http://127.0.0.1:9211")
    text = yaml.safe_dump(dict(document))
    reason = profiles.read(profiles.Scheduler(text, version, arguments, url)).unsupported()
    if reason:
        yield LEFT.found(f"{config.source}: {reason}", config.source)


def _differs(
    workload: facts.Raw, version: str, arguments: Sequence[str]
) -> Iterator[findings.Finding]:
    where = facts.key(workload)
    for container in facts.containers(workload):
        if container.get("name") != _CONTAINER:
            continue
        tag = str(container.get("image", "")).partition("@")[0].rpartition(":")[2]
        running = profiles.minor_of(tag)
        if running is not None and profiles.minor_of(version) not in (None, running):
            yield DIFFERS.found(f"{where} runs {tag}, the extender goes by {version}", where)
        given = [str(word) for word in facts.stated(container, "args")]
        if profiles.feature_gates(given) != profiles.feature_gates(arguments):
            yield DIFFERS.found(f"{where} has other {_GATES} than the extender knows of", where)


CHECK = findings.Check("decisions", "filter may choose nodes", (LEFT, DIFFERS), run)
