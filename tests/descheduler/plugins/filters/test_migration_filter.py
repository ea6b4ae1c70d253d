"""MigrationController as a filter: its own order, reservations, and `nodeFit`."""

import pytest

from descheduler.configuration.arguments import migration
from descheduler.framework import protocols
from descheduler.framework.filtering import elsewhere, limits, open_jobs, pod_checks
from descheduler.framework.nodes import node_fit
from descheduler.plugins.migration_filter import migration_filter
from tests.descheduler.builders import job, node, picture_of, pod, workload

DIRECT = {"defaultJobMode": "EvictDirectly"}


def filtered(seen, **written):
    """Return the filter of one round."""
    arguments = migration.MigrationControllerArgs.model_validate(written).complete()
    view = protocols.FilterView(seen, open_jobs.of(seen), node_fit.Table(seen))
    plugin = migration_filter.MigrationFilter(arguments)
    assert isinstance(plugin, protocols.FilterPlugin)
    return plugin.for_round(view)


WEB = [pod(f"web-{number}", "a") for number in range(4)]
EVICT = {"descheduler.alpha.kubernetes.io/evict": ""}


@pytest.mark.parametrize(
    ("fields", "written", "reason"),
    [
        pytest.param({}, DIRECT, "", id="evicted directly"),
        pytest.param({}, {}, migration_filter.SCHEDULER, id="scheduler without reservations"),
        pytest.param({"scheduler_name": "koord-scheduler"}, {}, "", id="scheduler with them"),
        pytest.param({}, {"schedulerNames": ["default-scheduler"]}, "", id="scheduler named"),
        pytest.param({"annotations": EVICT}, {}, migration_filter.SCHEDULER, id="asked for"),
        pytest.param(
            {"has_local_storage": True}, DIRECT, pod_checks.LOCAL_STORAGE, id="lasting check"
        ),
    ],
)
def test_what_keeps_a_pod(fields, written, reason):
    one = pod("web-9", "a", **fields)
    seen = picture_of([node("a")], [*WEB, one], workloads=[workload("web", 5)])
    assert filtered(seen, **written).refusal(one) == reason


def test_jobs_and_what_the_round_decides_are_looked_at():
    seen = picture_of(pods=WEB, workloads=[workload("web", 4)], jobs=[job("j", "web-0")])
    asked = filtered(seen, maxMigratingPerNode=1, **DIRECT)
    assert asked.refusal(WEB[0]) == migration_filter.MOVING
    assert asked.refusal(WEB[1]) == limits.NODE
    index = open_jobs.of(picture_of())
    fresh = picture_of(pods=WEB, workloads=[workload("web", 4)])
    arguments = migration.MigrationControllerArgs.model_validate(DIRECT).complete()
    view = protocols.FilterView(fresh, index, node_fit.Table(fresh))
    chained = migration_filter.MigrationFilter(arguments).for_round(view)
    assert chained.refusal(WEB[1]) == ""
    index.add(WEB[2])
    index.add(WEB[3])
    assert chained.refusal(WEB[1]) == limits.NODE


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        pytest.param({}, "", id="off"),
        pytest.param({"nodeFit": True}, "", id="fits"),
        pytest.param(
            {"nodeFit": True, "nodeSelector": "pool=x"}, elsewhere.NO_OTHER, id="selected"
        ),
        pytest.param(
            {"nodeFit": True, "nodeSelector": "pool=x", "skipEvictionGates": ["NodeFit"]},
            "",
            id="gate",
        ),
    ],
)
def test_another_node_has_to_take_the_pod(written, reason):
    small = node("c", cpu="100m", labels={"pool": "x"})
    nodes = [node("a", labels={"pool": "x"}), node("b"), small]
    seen = picture_of(nodes, WEB)
    assert filtered(seen, **written).late_refusal(WEB[0]) == reason


def test_the_own_node_and_those_that_are_not_ready_do_not_count():
    seen = picture_of([node("a"), node("b", ready=False)], WEB)
    asked = filtered(seen, nodeFit=True)
    assert [asked.late_refusal(one) for one in WEB[:2]] == [elsewhere.NO_OTHER] * 2
