"""The layout of a node as aligned text: ranges of CPUs, one line for each holder and device."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from domain import wording

Raw = Mapping[str, Any]
Row = Sequence[str]
_INDENT: Final = "    "
_WIDEST: Final = 48
"""Characters of a CPU list in one line."""
_PERCENT: Final[Mapping[str, str]] = {
    names.GPU_CORE: " of the cores",
    names.GPU_MEMORY_RATIO: " of the memory",
    names.RDMA: "",
    names.FPGA: "",
}


def lines(layout: Raw) -> Iterator[str]:
    """Yield the lines of a layout."""
    yield from _head(layout)
    placed: set[int] = set()
    for socket in layout["sockets"]:
        yield ""
        yield f"Socket {socket['socket']}"
        for node in layout["numaNodes"]:
            if node["socket"] == socket["socket"]:
                placed.add(node["numaNode"])
                yield from _numa_node(layout, node)
    others = [node for node in layout["numaNodes"] if node["numaNode"] not in placed]
    if others:
        yield ""
        yield "Without CPUs"
        for node in others:
            placed.add(node["numaNode"])
            yield from _numa_node(layout, node)
    loose = [one for one in layout["devices"] if one["numaNode"] not in placed]
    if loose:
        yield ""
        yield "Devices whose NUMA node is not known"
        yield from _devices(loose)
    if layout["problems"]:
        yield ""
        yield "Problems"
        yield from (f"  {problem}" for problem in layout["problems"])


def _head(layout: Raw) -> Iterator[str]:
    cpus = layout["cpus"]
    kinds = sorted({one["type"] for one in layout["devices"]})
    counts = [f"{sum(one['type'] == kind for one in layout['devices'])} {kind}" for kind in kinds]
    sockets, zones = len(layout["sockets"]), len(layout["numaNodes"])
    parts = [
        _cpus(cpus["count"]),
        wording.count(sockets, "socket", "sockets"),
        wording.count(zones, "NUMA node", "NUMA nodes"),
    ]
    yield f"Node {layout['node']}: {', '.join([*parts, *counts])}."
    if not cpus["count"]:
        return
    cores = wording.count(cpus["cores"], "core", "cores")
    threads = f"{cores} with {wording.count(cpus['threadsPerCore'], 'thread', 'threads')}"
    rule = f"; threads of a core: CPUs {cpus['siblings']}" if cpus["siblings"] else ""
    yield f"CPUs: {threads}{rule}."
    yield (
        f"Pods hold {_size(cpus['held'])} of them, "
        f"{wording.count(_size(cpus['reserved']), 'is', 'are')} reserved, "
        f"{wording.count(cpus['freeCount'], 'is', 'are')} free, "
        f"{cpus['freeInWholeCores']} of these in whole cores."
    )
    policies = [
        f"{title} {layout[key]}"
        for title, key in (("topology policy", "topologyPolicy"), ("bind policy", "cpuBindPolicy"))
        if layout[key]
    ]
    if policies:
        yield f"The node has {' and '.join(policies)}."


def _numa_node(layout: Raw, node: Raw) -> Iterator[str]:
    title = f"  NUMA node {node['numaNode']}"
    yield f"{title}: CPUs {node['cpus']}" if node["cpus"] else f"{title}: no CPUs"
    rows: list[Row] = [
        ("reserved", node["reserved"], _cpus(_size(node["reserved"])), "")
    ] if node["reserved"] else []  # fmt: skip
    for held in node["holders"]:
        count = _cpus(_size(held["cpus"])) if held["cpus"] else ""
        rows.append((held["pod"], held["cpus"] or "-", count, _amounts(held["resources"])))
    if node["cpus"]:
        whole = f"{node['freeInWholeCores']} in whole cores"
        rows.append(("free", node["free"] or "-", _cpus(node["freeCount"]), whole))
    yield from _aligned([part for row in rows for part in _wrapped(row)], _INDENT)
    yield from _aligned(_resources(node), _INDENT)
    yield from _devices([one for one in layout["devices"] if one["numaNode"] == node["numaNode"]])


def _resources(node: Raw) -> list[Row]:
    return [
        (name, f"{one['allocatable']} allocatable", f"{one['held']} held", f"{one['free']} free")
        for name, one in sorted(node["resources"].items())
        if name != names.CPU
    ]


def _devices(devices: Iterable[Raw]) -> Iterator[str]:
    """Yield the devices by PCIe switch."""
    by_switch: dict[str, list[Row]] = {}
    for one in devices:
        states = [f"{held['pod']} {_amounts(held['resources'])}" for held in one["holders"]]
        if not one["healthy"]:
            states.append("unhealthy")
        row = (f"{one['type']} {one['minor']}", one["id"] or "-", "; ".join(states) or "free")
        by_switch.setdefault(one["pcie"], []).append(row)
    for switch, rows in sorted(by_switch.items()):
        yield f"{_INDENT}PCIe switch {switch or 'not known'}"
        yield from _aligned(rows, f"{_INDENT}  ")


def _wrapped(row: Row) -> Iterator[Row]:
    """Yield a row whose CPU list is long as several rows."""
    name, cpulist, *others = row
    parts = [""]
    for span in cpulist.split(","):
        if len(parts[-1]) + len(span) > _WIDEST and parts[-1]:
            parts.append("")
        parts[-1] += f",{span}" if parts[-1] else span
    yield (name, parts[0], *others)
    for part in parts[1:]:
        yield ("", part, *("" for _ in others))


def _aligned(rows: Sequence[Row], indent: str) -> Iterator[str]:
    """Yield rows with columns of equal width."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield f"{indent}{'  '.join(cells)}".rstrip()


def _amounts(resources: Mapping[str, str]) -> str:
    return ", ".join(_amount(name, text) for name, text in sorted(resources.items()))


def _amount(name: str, text: str) -> str:
    if name in _PERCENT:
        return f"{text} %{_PERCENT[name]}"
    return f"{name.removeprefix('koordinator.sh/')} {text}"


def _size(cpulist: str) -> int:
    """Return how many CPUs a list has, as `cpulists` writes it."""
    spans = [span.partition("-") for span in cpulist.split(",") if span]
    return sum(int(last or first) - int(first) + 1 for first, _, last in spans)


def _cpus(number: int) -> str:
    return wording.count(number, "CPU", "CPUs")
