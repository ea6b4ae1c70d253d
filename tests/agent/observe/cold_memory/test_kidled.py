"""Cold pages are told from hot ones where the kernel counts them, and nowhere else."""

import pytest

from agent.host import files
from agent.observe.cold_memory import kidled

MIB = 1 << 20
ROWS = ("csei", "dsei", "cfei", "dfei", "csui", "dsui", "cfui", "dfui")
KINDS = (*ROWS, *(row[:-1] + "a" for row in ROWS), "slab")


def stats(period=120, **rows):
    """What the file says; each row has one figure per column of age."""
    head = [
        "# version: 1.0",
        "# page_scans: 24",
        "# slab_scans: 24",
        f"# scan_period_in_seconds: {period}",
        "# use_hierarchy: 1",
        "# buckets: 1,2,5,15,30,60,120,240",
        *("#" for _ in range(8)),
    ]
    body = [f"  {kind} " + " ".join(map(str, rows.get(kind, [0] * 8))) for kind in KINDS]
    text = "\n".join([*head, *body]) + "\n"
    assert len(text.splitlines()) == kidled.LINES
    return text.encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (stats(), 0),
        (stats(cfei=[9, 9, 9, 9, 9, 1, 2, 4]), 7),
        (stats(cfei=[0] * 5 + [1, 0, 0], dfei=[0] * 7 + [10], cfui=[0] * 7 + [100]), 111),
        (stats(csei=[5] * 8, cfea=[5] * 8, slab=[5] * 8), 0),
        (stats(period=0, cfei=[9] * 8), None),
    ],
    ids=["nothing", "old enough", "clean, dirty, locked", "no file pages", "not started"],
)
def test_what_is_cold(data, expected):
    assert kidled.cold_bytes(data, "g") == expected


@pytest.mark.parametrize("data", [b"", b"x\n", stats(cfei=["many"] * 8), stats() + b"more\n"])
def test_what_makes_no_sense_is_named(data):
    with pytest.raises(files.ReadingError, match="group g"):
        kidled.cold_bytes(data, "g")


@pytest.fixture
def counted(host):
    if host.tree.version == 2:
        pytest.skip("no kernel counts idle pages in groups of version 2")
    host.add("a", "Burstable", 500, 512 * MIB)
    host.observer.figures.with_hot = True

    def write(text, cold=64 * MIB):
        stat = text if text is not None else stats(cfei=[0] * 7 + [cold])
        groups = host.tree._names
        pod = groups.pod_folder("a", "Burstable")
        for folder in ("", pod, f"{pod}/{groups.scope('c-a')}"):
            (host.tree.cgroup / "memory" / folder / "memory.idle_page_stats").write_bytes(stat)

    host.write = write
    return host


def newest(host, *key):
    found = host.observer.samples.get((*key, "memory+hot"))
    return found.newest[1] if found else None


def test_hot_memory_is_sampled_where_the_kernel_counts(counted):
    counted.step()
    assert newest(counted, "node") is None
    counted.write(None)
    picture = counted.step()
    assert not picture.problems
    assert newest(counted, "pod", "a") == 448 * MIB
    assert newest(counted, "container", "a", "app") == 448 * MIB
    with_cache = counted.observer.samples.get(("node", "memory+cache")).newest[1]
    assert newest(counted, "node") == with_cache - 64 * MIB


def test_nobody_asks_nothing_is_read(counted):
    counted.observer.figures.with_hot = False
    counted.write(b"nonsense")
    assert not counted.step().problems
    assert newest(counted, "node") is None


def test_a_damaged_file_is_named_and_costs_nothing_else(counted):
    counted.write(b"nonsense\n")
    picture = counted.step()
    assert "cold pages" in picture.problems
    assert picture.usage.memory
    assert picture.pods[0].usage.memory == 512 * MIB
