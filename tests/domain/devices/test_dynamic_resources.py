"""Which devices of a node are held by ResourceClaims, by UUID and PCI address."""

import hypothesis
import hypothesis.strategies as st
import pytest

from api.kubernetes import dynamic_resources as dra
from domain.devices import dynamic_resources

DRIVER = "gpu.example.com"
PCI = {
    "as sysfs writes it": ("0000:3b:00.0", "pci 0000:3b:00.0"),
    "as NVML writes it": ("00000000:3B:00.0", "pci 0000:3b:00.0"),
    "without the domain": ("3b:00.0", "pci 0000:3b:00.0"),
    "a domain of its own": ("10000:01:00.7", "pci 10000:01:00.7"),
    "no function": ("0000:3b:00", ""),
    "a function that there is not": ("0000:3b:00.9", ""),
    "another text": ("somewhere", ""),
    "digits of another script": ("\u0660\u0660\u0660\u0660:3b:00.0", ""),
    "empty": ("", ""),
}


@pytest.mark.parametrize("case", PCI.values(), ids=PCI)
def test_pci_addresses_have_one_form(case):
    assert dynamic_resources.pci(case[0]) == case[1]


def a_slice(devices, *, node="n1", pool="n1", generation=1, **spec):
    return dynamic_resources.read_slice(
        dra.read_slice(
            {
                "spec": {
                    "driver": DRIVER,
                    "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
                    "nodeName": node,
                    "devices": [
                        {
                            "name": name,
                            "attributes": {k: {"string": v} for k, v in attributes.items()}
                            | {"index": {"int": 3}, "driverVersion": {"version": "1.2.3"}},
                        }
                        for name, attributes in devices.items()
                    ],
                    **spec,
                }
            }
        )
    )


def given(*results):
    items = [
        {"request": "r", "driver": DRIVER, "pool": "n1", "device": one}
        if isinstance(one, str)
        else {"driver": DRIVER, "pool": "n1", **one}
        for one in results
    ]
    status = {"allocation": {"devices": {"results": items}}}
    return dynamic_resources.given(dra.read_claim({"status": status}))


def holder(index, ident="GPU-A", bus_id="", node="n1"):
    found = index.held(node)
    return found.holder(ident, bus_id) if found else ""


SAME = {
    "uuid of the driver": ({"uuid": "gpu-a"}, ("GPU-A", "")),
    "uuid with a domain": ({"gpu.example.com/uuid": "GPU-A"}, ("GPU-A", "")),
    "the GPU of a slice": ({"uuid": "MIG-1", "parentUUID": "GPU-A"}, ("GPU-A", "")),
    "address, standard": ({"resource.kubernetes.io/pciBusID": "0000:3b:00.0"}, ("", "3B:00.0")),
    "address of the driver": ({"pciAddress": "0000:3b:00.0"}, ("x", "00000000:3B:00.0")),
}


@pytest.mark.parametrize("case", SAME.values(), ids=SAME)
def test_a_device_of_a_claim_is_found_again(case):
    attributes, (ident, bus_id) = case
    index = dynamic_resources.Index()
    index.slice_changed("s", a_slice({"gpu-0": attributes}))
    assert holder(index, ident, bus_id) == ""
    assert index.claim_changed("default/c", given("gpu-0")) == {"n1"}
    assert holder(index, ident, bus_id) == "default/c"
    assert index.claim_changed("default/c", ()) == {"n1"}
    assert index.held("n1") is None


NOT_HELD = {
    "another device": given("gpu-1"),
    "access for administrators": given({"device": "gpu-0", "adminAccess": True}),
    "nothing allocated": dynamic_resources.given(dra.read_claim({"status": {}})),
    "another pool": given({"device": "gpu-0", "pool": "n2"}),
}


@pytest.mark.parametrize("refs", NOT_HELD.values(), ids=NOT_HELD)
def test_what_a_claim_does_not_hold(refs):
    index = dynamic_resources.Index()
    index.slice_changed("s", a_slice({"gpu-0": {"uuid": "GPU-A"}}))
    index.claim_changed("default/c", refs)
    assert index.held("n1") is None


def test_a_device_of_another_node_with_the_same_address_is_another_one():
    index = dynamic_resources.Index()
    attributes = {"pciBusID": "0000:3b:00.0"}
    index.slice_changed("s", a_slice({"gpu-0": attributes}))
    index.slice_changed("t", a_slice({"gpu-0": attributes}, node="n2", pool="n2"))
    index.claim_changed("default/c", given("gpu-0"))
    assert holder(index, "", "3b:00.0") == "default/c"
    assert index.held("n2") is None


def test_devices_name_their_nodes_where_a_slice_spans_several():
    found = dra.read_slice(
        {
            "spec": {
                "driver": DRIVER,
                "pool": {"name": "p"},
                "perDeviceNodeSelection": True,
                "devices": [
                    {"name": "a", "nodeName": "n1", "attributes": {"uuid": {"string": "A"}}},
                    {"name": "b", "allNodes": True, "attributes": {"uuid": {"string": "B"}}},
                ],
            }
        }
    )
    assert [one.node for one in dynamic_resources.read_slice(found).offers] == ["n1"]


def test_only_the_newest_generation_of_a_pool_says_what_a_name_means():
    index = dynamic_resources.Index()
    index.slice_changed("old", a_slice({"gpu-0": {"uuid": "GPU-A"}}))
    index.claim_changed("default/c", given("gpu-0"))
    assert index.slice_changed("new", a_slice({"gpu-0": {"uuid": "GPU-B"}}, generation=2)) == {"n1"}
    assert (holder(index, "GPU-A"), holder(index, "GPU-B")) == ("", "default/c")
    index.slice_changed("new", None)
    assert (holder(index, "GPU-A"), holder(index, "GPU-B")) == ("default/c", "")


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("slice"),
            st.sampled_from("abc"),
            st.none()
            | st.tuples(
                st.sampled_from(["n1", "n2"]), st.integers(1, 2), st.sets(st.integers(0, 3))
            ),
        ),
        st.tuples(st.just("claim"), st.sampled_from("xyz"), st.sets(st.integers(0, 3))),
    ),
    max_size=12,
)


@hypothesis.given(STEPS)
def test_an_index_that_was_kept_equals_one_that_is_built_anew(steps):
    """And every node whose answer changes is among those that a change names."""
    kept, slices, claims = dynamic_resources.Index(), {}, {}
    for what, name, value in steps:
        before = {node: kept.held(node) for node in ("n1", "n2")}
        if what == "slice":
            found = None
            if value is not None:
                node, generation, numbers = value
                offered = {f"g{number}": {"uuid": f"U{node}{number}"} for number in numbers}
                found = a_slice(offered, node=node, pool="n1", generation=generation)
            slices[name] = found
            named = kept.slice_changed(name, found)
        else:
            claims[name] = given(*(f"g{number}" for number in sorted(value)))
            named = kept.claim_changed(name, claims[name])
        anew = dynamic_resources.Index()
        for key, one in claims.items():
            anew.claim_changed(key, one)
        for key, one in slices.items():
            anew.slice_changed(key, one)
        for node, was in before.items():
            assert kept.held(node) == anew.held(node)
            assert kept.offers(node) == anew.offers(node)
            assert node in named or kept.held(node) == was
