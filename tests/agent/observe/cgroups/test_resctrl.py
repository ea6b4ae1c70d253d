"""What classes hold of caches and move to memory is told as the processor counts it."""

import pytest

from agent.observe import collectors
from agent.observe.cgroups import resctrl
from process.runtime import metrics

FIGURES = {"llc_occupancy": "4096", "mbm_local_bytes": "70", "mbm_total_bytes": "100"}


@pytest.fixture
def counted(host):
    host.registry = metrics.Registry()
    made = resctrl.Caches(host.registry, 10.0)
    host.observer._collectors = collectors.Collectors([made])
    root = host.tree.sys / "fs" / "resctrl"

    def write(group, cache, **changes):
        for name, text in (FIGURES | changes).items():
            path = root / group / "mon_data" / cache / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")

    host.write = write
    return host


def occupied(host, name, cache):
    labels = {"class": name, "cache": cache}
    return host.registry.value("koord_agent_cache_occupied_bytes", labels)


def moved(host, name, cache, scope):
    labels = {"class": name, "cache": cache, "scope": scope}
    return host.registry.value("koord_agent_memory_traffic_bytes_total", labels)


def test_every_class_and_cache(counted):
    assert "resctrl is not mounted" in counted.step().problems["cache use"]
    counted.write("", "mon_L3_00", llc_occupancy="1")
    counted.write("LS", "mon_L3_00")
    counted.write("LS", "mon_L3_01", mbm_total_bytes="Unavailable", llc_occupancy="Error")
    counted.write("BE", "mon_sub_L3_00")
    assert "cache use" not in counted.step(10).problems
    assert occupied(counted, "default", "0") == 1
    assert occupied(counted, "LS", "0") == 4096
    assert occupied(counted, "LS", "1") is None
    assert occupied(counted, "BE", "0") is None
    assert moved(counted, "LS", "0", "total") == 100
    assert moved(counted, "LS", "1", "local") == 70
    assert moved(counted, "LS", "1", "total") is None
    samples = counted.observer.samples
    assert samples.get(("node", "cache", "LS", "0")).newest[1] == 4096
    assert samples.get(("node", "memory-traffic-total", "LS", "0")).newest[1] == 100


def test_a_class_that_goes_takes_its_figures_along(counted):
    counted.write("BE", "mon_L3_00")
    counted.write("", "mon_L3_00")
    counted.step(10)
    assert occupied(counted, "BE", "0") == 4096
    (counted.tree.sys / "fs/resctrl/BE").rename(counted.tree.sys / "gone")
    counted.step(10)
    assert occupied(counted, "BE", "0") is None
    counted.observer.close()
    assert occupied(counted, "default", "0") is None
