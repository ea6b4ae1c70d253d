"""Who leaves for a pod that waits for quota alone."""

import pytest

from api import names
from cli.placement import asked_pod
from cli.quota import cluster, preemptor
from extender.preemption import planner
from tests import builders
from tests.cli.placement import clusters


@pytest.mark.parametrize(("home", "leaves"), [(names.NAMESPACE, True), ("acme", False)])
def test_no_pod_of_the_namespace_in_which_koord_runs_leaves_for_quota(home, leaves):
    used = clusters.of_team(clusters.low("used", namespace="acme"))
    snapshot = clusters.snapshot(used, builders.a_node("n1"), clusters.a_team(), home=home)
    asked = asked_pod.added(snapshot, clusters.of_team(clusters.wanted()), "default")
    found = preemptor.planned(cluster.build(asked.snapshot), asked.uid)
    assert isinstance(found, planner.Plan if leaves else planner.NoPlan)
