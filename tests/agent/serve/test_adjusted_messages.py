"""What runtimes request of containers, in the words of edits."""

import pytest

from agent.model import edits
from agent.nri import messages
from agent.serve import adjusted_messages

R = edits.Role
QUOTAS = {
    "none": (0, 100_000, {}),
    "no limit": (-1, 100_000, {R.CPU_QUOTA: "-1"}),
    "of the usual period": (50_000, 100_000, {R.CPU_QUOTA: "50000"}),
    "of a shorter period": (5_000, 20_000, {R.CPU_QUOTA: "25000"}),
    "of a period that is not named": (50_000, 0, {R.CPU_QUOTA: "50000"}),
}


@pytest.mark.parametrize(("quota", "period", "found"), QUOTAS.values(), ids=QUOTAS)
def test_a_quota_counts_per_usual_period(quota, period, found):
    asked = messages.new("LinuxResources")
    asked.cpu.quota.value, asked.cpu.period.value = quota, period
    assert adjusted_messages.requested(asked) == found


def test_what_is_zero_was_not_requested():
    asked = messages.new("LinuxResources")
    asked.cpu.shares.value = asked.memory.limit.value = 0
    assert adjusted_messages.requested(asked) == {}
