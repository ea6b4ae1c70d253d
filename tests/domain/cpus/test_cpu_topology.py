"""Masks of CPUs."""

from domain.cpus import cpu_topology, cpulists
from tests import processor_time


def test_cpus_that_no_machine_has_are_in_no_mask():
    cpus = cpulists.parse("1,4096,4097,2147483646,2147483647")
    with processor_time.below(0.1):
        assert cpu_topology.mask_of(cpus) == 1 << 1 | 1 << 4096
