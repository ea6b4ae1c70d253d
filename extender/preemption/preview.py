"""What preemption would do for a pod that waits, without doing it: the very plan. Pure."""

import dataclasses
from typing import Any

from api.wire import durations
from extender.framework import pipeline
from extender.framework.eviction import preemption
from extender.preemption import in_flight, planner
from extender.requeue import unschedulable_pods
from extender.state import cluster_state


def plan(
    plugins: pipeline.Pipeline,
    cluster: cluster_state.ClusterState,
    preemptions: in_flight.Preemptions,
    waiter: unschedulable_pods.UnschedulablePod,
    under: tuple[preemption.Terms, float],
) -> planner.Plan | planner.NoPlan:
    """Plan on the nodes of the last attempt, under terms and at a moment of the wall clock.

    Pods that others evict at this moment count as leaving.
    """
    terms, now = under
    view = cluster.view()
    terms = dataclasses.replace(terms, going=preemptions.going(waiter.request.uid))
    return planner.plan(plugins, waiter.request, view, waiter.rows(view), terms, now)


def shown(
    plugins: pipeline.Pipeline,
    cluster: cluster_state.ClusterState,
    preemptions: in_flight.Preemptions,
    waiter: unschedulable_pods.UnschedulablePod,
    now: float,
) -> dict[str, Any]:
    """Return the preemption that is under way for a pod, and what would be planned now."""
    found = plan(plugins, cluster, preemptions, waiter, (preemptions.terms(cluster), now))
    document = {"planned": isinstance(found, planner.Plan), **found.document()}
    one = preemptions.get(waiter.request.uid)
    if one is not None:
        document["underWay"] = {
            "node": one.record.node,
            "victims": len(one.record.victims),
            "evicted": len(one.evicted),
            "until": durations.precise_moment(one.record.until),
            "victimsHaveLeft": bool(one.freed_at),
        }
    return document
