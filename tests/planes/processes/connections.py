"""Which TCP connections processes open, and what the network policies of a chart let them open."""

import pathlib

from tests.planes.install import plain

OPEN = {"01", "02"}
"""Established, and on the way there."""
LISTENING = "0A"
API_SERVER, KUBELET, WEBHOOK, NAMES = "API server", "kubelet", "webhook", "DNS"
EXTENDER = "extender"


def opened(pid, net="/proc/net"):
    """Return the ports that a process has connections to which it opened itself."""
    inodes = set(_sockets(pid))
    mine = [line for line in _lines(net) if line[9] in inodes]
    listening = {_port(line[1]) for line in mine if line[3] == LISTENING}
    return {_port(line[2]) for line in mine if line[3] in OPEN and _port(line[1]) not in listening}


def _sockets(pid):
    try:
        files = list(pathlib.Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        return
    for file in files:
        try:
            target = str(file.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _lines(net):
    for name in ("tcp", "tcp6"):
        table = pathlib.Path(net, name)
        if table.exists():
            yield from (line.split() for line in table.read_text().splitlines()[1:])


def _port(address):
    return int(address.rpartition(":")[2], 16)


def allowed(documents, component, ports):
    """Return whom the policy of a component lets it call, by the values `ports` of the chart."""
    (policy,) = (
        one
        for one in plain.of_kind(documents, "NetworkPolicy")
        if one["metadata"]["name"] == f"koord-{component}"
    )
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    return {_callee(rule, ports) for rule in policy["spec"]["egress"]}


def _callee(rule, ports):
    numbers = {one["port"] for one in rule["ports"]}
    if numbers == set(ports[API_SERVER]):
        return API_SERVER
    if numbers == {ports[KUBELET]}:
        return KUBELET
    if numbers == {53}:
        return NAMES
    (chosen,) = rule["to"]
    component = chosen["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
    return {("webhook", "https"): WEBHOOK, ("scheduler", "metrics"): EXTENDER}[component, *numbers]
