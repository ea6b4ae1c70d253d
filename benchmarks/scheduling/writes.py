"""What a scheduled pod costs in writes to the API server and in bytes between the processes.

python -m benchmarks.scheduling.writes [--nodes 1000] [--pods 1000]

Writes are read from the audit log of the real API server, bytes are counted by a relay between
kube-scheduler and the extender. The load is that of `benchmarks.scheduling.throughput`.
"""

import argparse
import urllib.parse
from collections.abc import Sequence

import uvloop

from api.kubernetes import scheduler_config
from benchmarks import figures
from benchmarks.plane import extenders, rig
from benchmarks.scheduling import relay
from tests.planes.processes import audit

_READS = frozenset({"get", "list", "watch"})


async def _main(arguments: argparse.Namespace) -> None:
    print(f"{figures.machine()}\n{arguments.nodes} nodes, {arguments.pods} pods")
    async with rig.running(rig.even(arguments.nodes), audit=True) as made:
        await made.create_pods(arguments.pods)
        kubeconfig = made.plane.write_kubeconfig(made.workdir / "kubeconfig", rig.USER)
        async with extenders.ours(made.workdir, kubeconfig) as extender:
            port = urllib.parse.urlsplit(extender.url).port
            assert port
            async with relay.running(port) as counted:
                config = scheduler_config.render(
                    scheduler_config.Options(extender_url=counted.url, queries_per_second=5000)
                )
                await made.settle()
                start = audit.mark(made.plane.audit_log)
                await made.drained(arguments.pods, {}, lambda: made.plane.start_scheduler(config))
                await made.plane.stop_scheduler()
                _show(counted, audit.read(made.plane.audit_log, start), arguments.pods)


def _show(counted: relay.Counted, calls: Sequence[audit.Call], pods: int) -> None:
    written = [call for call in calls if call.user == rig.USER and call.verb not in _READS]
    by_kind: dict[str, int] = {}
    for call in written:
        kind = f"{call.verb} {call.resource}/{call.subresource} {call.code}"
        by_kind[kind] = by_kind.get(kind, 0) + 1
    print(f"writes of ours: {by_kind}; connections of the scheduler: {counted.connections}")
    figures.show(
        figures.plain(
            "F12.writes", "API writes by the extender per scheduled pod", "writes/pod",
            [len(written) / pods], "goal 1.0",
        ),
        figures.plain(
            "F12.bytes.in", "bytes from kube-scheduler to the extender per scheduled pod",
            "bytes/pod", [counted.to_server / pods],
        ),
        figures.plain(
            "F12.bytes.out", "bytes from the extender to kube-scheduler per scheduled pod",
            "bytes/pod", [counted.to_caller / pods],
        ),
        figures.plain(
            "F12.connections", "connections that kube-scheduler opens per scheduled pod",
            "connections/pod", [counted.connections / pods],
        ),
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000)
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
