"""The limit of open files is raised, shared out, and holds a full node."""

import resource

import pytest

from agent.host import file_descriptors, files
from agent.model import state

PODS = 250


@pytest.mark.parametrize(
    ("limit", "kept", "counters"),
    [
        pytest.param(64, 48, 16, id="absurd"),
        pytest.param(1024, 576, 192, id="the soft limit of most services"),
        pytest.param(4096, 2880, 960, id="the hard limit of some"),
        pytest.param(65536, 8192, 57088, id="plenty"),
    ],
)
def test_a_limit_is_shared_out_with_some_to_spare(limit, kept, counters):
    assert file_descriptors.share(limit) == file_descriptors.Budget(kept, counters)
    assert limit < 512 or kept + counters + file_descriptors.RESERVE <= limit


def test_the_soft_limit_is_raised_as_far_as_allowed(soft_limit):
    with soft_limit(1024):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        assert file_descriptors.limit() == 1024
        assert file_descriptors.raise_limit() == min(hard, file_descriptors.HIGHEST)
        assert file_descriptors.limit() == min(hard, file_descriptors.HIGHEST)
        assert file_descriptors.raise_limit() == file_descriptors.limit()


@pytest.fixture
def low(soft_limit):
    with soft_limit(1024):
        yield


def test_a_full_node_below_a_low_limit_of_open_files(low, host, new_pod):
    """250 pods of every kind: nothing goes unread, whatever the limit."""
    host.know(thresholds=state.Thresholds(True))
    kinds = {f"p{at}": ("BestEffort", "Burstable", "Guaranteed")[at % 3] for at in range(PODS)}
    host.tree.add_pods({uid: (kind, [f"c-{uid}"]) for uid, kind in kinds.items()})
    for uid in kinds:
        host.tree.set_load(uid, 10, 1 << 20)
    host.know(pods=tuple(new_pod(uid, kind) for uid, kind in kinds.items()))
    for _ in range(2):
        picture = host.step()
        assert picture.problems == {}
    assert all(pod.usage.cpu is not None for pod in picture.pods)
    assert all(pod.containers[0].usage.memory for pod in picture.pods)
    assert len(picture.best_effort.groups) > PODS // 3
    assert files.read("/proc/self/status")
