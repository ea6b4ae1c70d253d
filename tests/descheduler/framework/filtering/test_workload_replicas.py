"""How many pods of a workload may move at the same time, by the reference's formula."""

import hypothesis
import pytest
from hypothesis import strategies as st

from descheduler.framework.filtering import workload_replicas
from tests.descheduler import builders


@pytest.mark.parametrize(
    ("replicas", "written", "found"),
    [
        (6, "80%", 4),
        (6, "150%", 6),
        (6, 7, 6),
        (6, None, 2),
        (50, "0%", 1),
        (50, 0, 1),
        (25, None, 2),
        (10, None, 2),
        (11, None, 1),
        (4, None, 2),
        (3, None, 1),
        (0, None, 0),
        (0, "50%", 0),
    ],
)
def test_limits_are_those_of_the_reference(replicas, written, found):
    assert workload_replicas.limit(replicas, written) == found


@hypothesis.given(
    st.integers(0, 10_000),
    st.none() | st.integers(0, 10_000) | st.integers(0, 300).map(lambda number: f"{number}%"),
)
def test_a_limit_is_between_one_and_all(replicas, written):
    assert min(1, replicas) <= workload_replicas.limit(replicas, written) <= replicas


def test_a_replica_set_belongs_to_its_deployment():
    seen = builders.picture_of(workloads=[builders.workload("web", owner="deployment")])
    assert workload_replicas.family("web", seen) == "deployment"
    assert workload_replicas.family("other", seen) == "other"
