"""The annotation with the devices of a pod is read in the same way, however it is written."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from api.wire import base
from domain.devices import inventory, records
from tests import draws

AMOUNTS = st.dictionaries(
    st.sampled_from((names.GPU_CORE, names.GPU_MEMORY, names.RDMA, "x")),
    st.one_of(st.sampled_from(("50", "8Gi", "-1", "no quantity", "", "1e3")), st.integers(-1, 9)),
    max_size=2,
)
ONE = st.dictionaries(
    st.sampled_from(("minor", "Minor", "id", "resources", "extension", "other")),
    st.one_of(
        st.integers(-2, 5000), st.none(), st.just("GPU-1"), st.just(1.0), st.booleans(), AMOUNTS,
        st.just({"vfs": [{"minor": 1, "busID": "0000:01:00.1"}]}),
    ),
    max_size=4,
)  # fmt: skip
TEXTS = st.dictionaries(
    st.sampled_from(("gpu", "rdma")),
    st.one_of(st.lists(ONE, max_size=2), st.none(), st.just(3)),
    max_size=2,
)


def outcome(read):
    try:
        return read()
    except ValueError as error:
        return str(error)


@settings(max_examples=draws.at_least(150), deadline=None)
@given(written=TEXTS)
def test_the_quick_reader_says_what_the_other_says(written):
    text = json.dumps(written)
    assert outcome(lambda: records.decoded(text)) == outcome(lambda: records.anyhow(text))


PLAIN = inventory.Granted(3, {names.GPU_CORE: 50, names.GPU_MEMORY: 8 << 30}, id="GPU-3")
SLICED = inventory.Granted(
    1, {names.RDMA: 1}, (inventory.Function(2, "0000:01:00.2"),), "half", "mlx5_1"
)


@pytest.mark.parametrize("granted", [PLAIN, SLICED], ids=["plain", "with more about it"])
def test_what_is_written_is_read_back(granted):
    held = {"gpu": (granted,), "rdma": (granted, granted)}
    (text,) = records.encoded(held).values()
    assert records.decoded(text) == held


@given(
    kinds=st.dictionaries(
        st.sampled_from(("gpu", "rdma", 'ty"pe')),
        st.lists(
            st.builds(
                inventory.Granted,
                st.integers(0, 9),
                st.dictionaries(
                    st.sampled_from((names.GPU_CORE, names.GPU_MEMORY)), st.integers(0, 1 << 40)
                ),
                template=st.sampled_from(("", "half")),
                id=st.text(max_size=3),
            ),
            max_size=2,
        ).map(tuple),
        max_size=2,
    )
)
def test_the_text_is_that_of_the_value(kinds):
    (text,) = records.encoded(kinds).values()
    assert text == base.encoded(records.written(kinds))
    assert not records.is_plain(kinds) or records.decoded(text) == kinds


@pytest.mark.parametrize("more", [{}, {"extension": {"gpuSharedResourceTemplate": "t"}}])
def test_what_an_older_release_wrote_is_read_under_present_names(more):
    def text(prefix):
        resources = {f"{prefix}/gpu-core": "50", f"{prefix}/gpu-memory-ratio": "50"}
        return json.dumps({"gpu": [{"minor": 1, "resources": resources, **more}]})

    old, present = (records.decoded(text(p)) for p in ("kubernetes.io", "koordinator.sh"))
    assert old == present
    assert dict(old["gpu"][0].amounts) == {names.GPU_CORE: 50, names.GPU_MEMORY_RATIO: 50}
