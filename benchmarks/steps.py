"""The benchmarks that `make bench` runs, with their arguments and the figures that they give."""

from collections.abc import Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """One benchmark as it is run here."""

    name: str
    module: str
    figures: Sequence[str]
    """Figures by which the step can be asked for as well."""
    quick: Sequence[str]
    full: Sequence[str]
    plane: bool = False
    """Whether it needs the binaries of a real control plane."""


_THROUGHPUT = "scheduling.throughput"
_QUICK, _FULL = ("--pods=1200", "--rounds=3"), ("--pods=2000", "--rounds=7")
_SHARED = "--layout=shared"
_ALL = "--variants=stock,ours,never,busy,minimal,one-name"
_KOORDINATOR = "--variants=stock,ours,koord-scheduler,busy,koord-scheduler-busy"
_PAIR = "--variants=stock,ours"
_THREE = "--variants=stock,ours,never"
_F2 = ("--qps=50", "--pods=600", _PAIR)
_SIZES = ("--kilobytes=2,7,60", _SHARED, _PAIR)
_NODES = ("--nodes=1000,5000", _SHARED, _PAIR)

STEPS = (
    Step("throughput", _THROUGHPUT, ("F1", "F1.go", "F5"), (*_QUICK, _ALL), (*_FULL, _ALL),
         plane=True),
    Step("throughput-shared", _THROUGHPUT, ("F1.shared", "F1.busy", "F1.shared.go", "F5.shared"),
         (*_QUICK, _SHARED, _ALL), (*_FULL, _SHARED, _ALL), plane=True),
    Step("koord-scheduler", _THROUGHPUT, ("K", "K.busy"),
         (*_QUICK, _SHARED, _KOORDINATOR), (*_FULL, _SHARED, _KOORDINATOR), plane=True),
    Step("pod-sizes", _THROUGHPUT, ("F1.shared.2KB", "F1.shared.60KB"),
         (*_SIZES, "--pods=800", "--rounds=2"), (*_SIZES, "--pods=1500", "--rounds=5"),
         plane=True),
    Step("default-qps", _THROUGHPUT, ("F2",), (*_F2, "--rounds=2"), (*_F2, "--rounds=5"),
         plane=True),
    Step("throughput-100", _THROUGHPUT, ("F1.100",), ("--nodes=100", "--pods=1000", "--rounds=2"),
         ("--nodes=100", "--pods=2000", "--rounds=5"), plane=True),
    Step("throughput-5000", _THROUGHPUT, ("F1.5000.shared", "F1.5000.shared.cost"),
         (*_NODES, "--pods=800", "--rounds=2"), (*_NODES, "--pods=2000", "--rounds=5"),
         plane=True),
    Step("placement", "scheduling.placement", ("placement.cpu", "placement.replicas"),
         ("--pods=1000", "--rounds=1", _THREE), ("--rounds=5", _THREE), plane=True),
    Step("hotpath", "scheduling.hotpath", ("hotpath.overhead",), ("--pods=1000", "--rounds=1"),
         ("--pods=2000", "--rounds=5"), plane=True),
    Step("hotpath-steps", "scheduling.hotpath", ("hotpath.steps",),
         ("--by=steps", "--pods=200", "--rounds=1"), ("--by=steps", "--pods=400", "--rounds=3"),
         plane=True),
    Step("shared-gpus", "scheduling.shared_gpus", ("devices.shared",),
         ("--nodes=300", "--pods=800", "--rounds=1"), (), plane=True),
    Step("writes", "scheduling.writes", ("F12",), ("--nodes=100", "--pods=200"),
         ("--nodes=1000", "--pods=1000"), plane=True),
    Step("latency", "scheduling.calls.latency", ("F3",),
         ("--pods=50000", "--blocks=5", "--calls=100"), ("--blocks=9", "--calls=250"), plane=True),
    Step("plugins", "scheduling.calls.plugins", ("plugins.filter", "plugins.bind"),
         ("--pods=10000", "--blocks=3", "--calls=100"), ("--blocks=9", "--calls=250"),
         plane=True),
    Step("extender", "scheduling.calls.verbs", ("F4", "F10"), ("--rounds=3", "--calls=100"),
         ("--rounds=7", "--calls=300")),
    Step("topology", "scheduling.calls.topology", ("cpus.pick", "topology.filter"),
         ("--calls=150", "--rounds=2"), ("--calls=500", "--rounds=7")),
    Step("topology-gangs", "topology_gangs", ("gangs.distance", "gangs.best", "gangs.place"),
         (), ("--rounds=15", "--small=20")),
    Step("gang-planning", "gang_planning",
         ("gangs.plan", "gangs.plan.step", "gangs.refuse", "gangs.refuse.step"),
         ("--rounds=5",), ("--rounds=15",)),
    Step("gang-throughput", "gangs.throughput",
         ("gangs.bound", "gangs.refused", "gangs.rate"),
         ("--nodes=64", "--members=64", "--gangs=60", "--rounds=1"), ("--rounds=3",), plane=True),
    Step("console", "console.views", ("console.browser.first", "console.server.nodes"),
         ("--rounds=3",), ("--rounds=7",)),
    Step("quota-plugin", "scheduling.calls.quota", ("quota.filter", "quota.life"),
         ("--rounds=5", "--calls=100"), ("--rounds=15",)),
    Step("reservations", "reservations.calls", ("reservations.filter", "reservations.life"),
         ("--rounds=3", "--calls=100"), ("--rounds=9", "--calls=400")),
    Step("reservations-throughput", "reservations.throughput",
         ("reservations.rate", "reservations.owner"),
         ("--nodes=200", "--pods=3000", "--waiting=600", "--reservations=400", "--owners=15",
          "--rounds=1"),
         ("--rounds=3",), plane=True),
    Step("quota-churn", "quota_churn.churn", ("F15",),
         ("--quotas=20", "--pods=500", "--nodes=100", "--per-second=40", "--seconds=10",
          "--rounds=1"),
         ("--quotas=200", "--pods=20000", "--variants=none,quotas", "--rounds=1", "--seconds=40"),
         plane=True),
    Step("stalls", "scheduling.calls.stalls", ("F11",), ("--seconds=60",), ("--seconds=600",)),
    Step("quota", "quota", ("F9", "F9.pod"), ("--rounds=3",), ("--rounds=11",)),
    Step("openb", "openb.scoreboard", (), (), ()),
    Step("openb-real", "openb.real_scheduler", (), ("--workloads=default", "--nodes=100"), (),
         plane=True),
    Step("descheduling-balance", "descheduling.balance",
         ("descheduling.balance", "descheduling.fit"), ("--rounds=3",), ("--rounds=15",)),
    Step("descheduling-day", "descheduling.day", ("descheduling.day",),
         ("--nodes=60", "--hours=4"), ()),
    Step("descheduling-round", "descheduling.whole_round",
         ("descheduling.round", "descheduling.look", "descheduling.memory"),
         ("--nodes=1000", "--rounds=3"), ("--rounds=7",)),
    Step("overcommit", "overcommit", ("F8",), ("--rounds=5",), ("--rounds=15",)),
    Step("manager-minutes", "manager_minutes", ("F8.minute", "F8.queue"),
         ("--nodes=200", "--pods=6000", "--minutes=1"), ()),
    Step("reviews", "admission.reviews", ("F6.rps",), ("--rounds=3", "--seconds=2"),
         ("--rounds=7",)),
    Step("agent", "node.agent", ("F7",), ("--rounds=1", "--seconds=20"),
         ("--rounds=5", "--seconds=60")),
    Step("agent-tick", "node.tick", ("F7.tick",), ("--seconds=60",), ("--seconds=240",)),
    Step("imports", "imports", (), ("--rounds=3",), ("--rounds=9",)),
    Step("agent-day", "node.day", ("F7.day",), ("--pods=10",), ("--pods=100",)),
    Step("agent-peers", "node.beside_peers", ("F7.peers",), ("--rounds=1",), ("--rounds=3",)),
    Step("cri-proxy", "node.cri_proxy", ("F16.proxy",), ("--rounds=4",), ("--rounds=20",)),
    Step("admission", "admission.added_latency", ("F6",),
         ("--rounds=3", "--seconds=4", "--rates=100,200"), (), plane=True),
)  # fmt: skip


class UnknownError(ValueError):
    """A name that neither a step nor a figure has."""


def chosen(names: Sequence[str]) -> list[Step]:
    """Return the steps of these names or figures in the order of the list; all without names."""
    known = {each for step in STEPS for each in (step.name, *step.figures)}
    if unknown := sorted(set(names) - known):
        raise UnknownError(
            f"unknown: {', '.join(unknown)}; known are {', '.join(step.name for step in STEPS)} "
            f"and the figures {', '.join(each for step in STEPS for each in step.figures)}"
        )
    return [step for step in STEPS if not names or {step.name, *step.figures} & set(names)]
