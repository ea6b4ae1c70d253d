"""RDMA adapters, from sysfs. The node agent writes them into the Device itself."""

from agent.device_daemon.hardware import findings
from agent.devices import rdma


def discover(host: findings.Host, _at: float) -> findings.Findings:
    """Return the adapters with their health; one that cannot be read is named."""
    found = rdma.discover(host.sys)
    cards = tuple(
        findings.Card(
            findings.RDMA,
            one.identity,
            one.identity,
            one.minor,
            None if one.place is None else one.place.node,
            one.healthy,
        )
        for one in found.devices
    )
    return findings.Findings(cards, problems=found.problems)
