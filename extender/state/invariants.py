"""What must hold of the extender's picture at every moment; checked after every scenario."""

from collections.abc import Collection, Iterable

from extender.state import allocations, claims, cluster_state, deltas, ledger, records


def over_lent(cluster: cluster_state.ClusterState, plugin: str) -> list[str]:
    """I1: name the nodes that have lent more than they may, by a plug-in's summary of the rest.

    A node whose online pods grew after it had lent may show up here for a while; no bind of
    ours leads here.
    """
    cluster.refresh()
    view = cluster.view()
    return [
        f"{name} has lent {-int(left)} too much"
        for name, row in view.rows.items()
        for left in view.figures[plugin][:, row]
        if left < 0
    ]


def misplaced(books: ledger.Ledger, truth: Iterable[records.PodRecord]) -> list[str]:
    """I2: name pods that count elsewhere than the API server and our assumptions say."""
    expected = {pod.uid: pod.node for pod in truth if pod.node}
    for uid, assumed in books.assumptions.items():
        expected.setdefault(uid, assumed.placed.node)
    counted = {uid: pod.node for uid, pod in books.cluster.placements().items()}
    return [
        f"pod {uid} counts on {counted.get(uid)}, belongs on {expected.get(uid)}"
        for uid in sorted(expected.keys() | counted.keys())
        if counted.get(uid) != expected.get(uid)
    ]


def drifted(cluster: cluster_state.ClusterState) -> list[str]:
    """I3: name nodes whose figures differ from those of a rebuilt snapshot."""
    fresh = cluster.rebuilt()
    present, wanted = cluster.fingerprint(), fresh.fingerprint()
    return [
        f"node {name} differs from a rebuilt one"
        for name in sorted(present.keys() | wanted.keys())
        if present.get(name) != wanted.get(name)
    ]


def misallocated(books: ledger.Ledger, truth: Iterable[records.PodRecord]) -> list[str]:
    """I4: name bound pods whose claim holds something else than what is written on them."""
    found = ((pod, books.cluster.claim(pod.uid)) for pod in truth if pod.node)
    return [
        f"pod {pod.uid} says {dict(pod.allocations)}, its claim holds {dict(claim.allocations)}"
        for pod, claim in found
        if claim is not None and claim.allocations != pod.allocations
    ]


def overlapping(
    cluster: cluster_state.ClusterState, codecs: Collection[allocations.AllocationCodec]
) -> list[str]:
    """I5: name claims of one node that were allocated the same thing."""
    by_node: dict[str, list[claims.Claim]] = {}
    for claim in cluster.all_claims().values():
        by_node.setdefault(claim.node, []).append(claim)
    return [
        f"{found.plugin} of {node} was allocated to {found.one} and to {found.other}"
        for node, held in sorted(by_node.items())
        for found in claims.conflicts(held, codecs)
    ]


def untold(books: ledger.Ledger, truth: Iterable[records.PodRecord]) -> list[str]:
    """I6: name pods without a node whose state differs from what the watch shows.

    The state holds none while no plug-in wants them, and never one that is assumed on a node.
    """
    objects = books.cluster.objects()
    told = {one.key: one.after for one in objects if one.kind == deltas.UNSCHEDULED_POD}
    wanted = {
        pod.uid: pod
        for pod in truth
        if books.unscheduled.wants(pod) and not pod.node and pod.uid not in books.assumptions
    }
    return [
        f"pod {uid} without a node stands as {told.get(uid)}, is {wanted.get(uid)}"
        for uid in sorted(told.keys() | wanted.keys())
        if told.get(uid) != wanted.get(uid)
    ]


def check(
    books: ledger.Ledger,
    truth: Iterable[records.PodRecord],
    codecs: Collection[allocations.AllocationCodec] = (),
) -> list[str]:
    """Check everything that can be checked without knowing what was done."""
    pods = tuple(truth)
    problems = misplaced(books, pods) + misallocated(books, pods) + drifted(books.cluster)
    problems += overlapping(books.cluster, codecs) + untold(books, pods)
    if any(books.cluster.claim(uid) != p.claim for uid, p in books.assumptions.items()):
        problems.append("an assumption is not counted")
    return problems
