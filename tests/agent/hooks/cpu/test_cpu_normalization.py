"""Quotas on nodes with fast cpus."""

import pytest

from agent.hooks.cpu import cpu_normalization
from agent.model import state

KEY = "node.koordinator.sh/cpu-normalization-ratio"


@pytest.mark.parametrize("written", ["bad", "0", "-1", "nan", "inf"])
def test_a_bad_ratio_is_named(written):
    with pytest.raises(cpu_normalization.RatioError, match=KEY):
        cpu_normalization.ratio({KEY: written})


def test_quotas_shrink_on_fast_cpus(placed):
    pods = (
        placed("ls", limits={"cpu": "2"}),
        placed("unlimited"),
        placed("own", limits={"cpu": "2"}, cpus=frozenset({1})),
        placed("batch", quality="BE", limits={"cpu": "2"}),
    )
    found = cpu_normalization.reconcile(state.NodeState(at=0, pods=pods), 1.3)
    assert {edit.group: edit.value for edit in found.wanted} == {"ls": "153847", "ls/app": "153847"}


@pytest.mark.parametrize("by", [None, 1.0, 0.8])
def test_slow_cpus_change_nothing(placed, by):
    now = state.NodeState(at=0, pods=(placed(limits={"cpu": "2"}),))
    assert cpu_normalization.reconcile(now, by).wanted == ()
    assert cpu_normalization.scaled(200_000, by) == 200_000
