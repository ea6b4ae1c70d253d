"""What pods of a node hold and borrow is the same however one came to know of them."""

from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator.metadata import qos
from extender.framework import views
from extender.plugins.batch_fit import node_sums

REQUIREMENTS = st.builds(
    views.PodRequirements,
    requests=st.dictionaries(
        st.sampled_from(("cpu", "memory", names.BATCH_CPU, names.BATCH_MEMORY)),
        st.integers(1, 9),
    ).map(lambda amounts: tuple(sorted(amounts.items()))),
    limits=st.just(()),
    band=st.sampled_from((qos.Band.PROD, qos.Band.BATCH)),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("come", "go", "become", "elsewhere")), st.integers(0, 5), REQUIREMENTS
    ),
    max_size=20,
)


@given(STEPS)
def test_they_are_those_of_all_pods_after_any_changes(steps):
    kept, held = node_sums.NodeSums(), []
    for at, (kind, number, wanted) in enumerate(steps):
        pod = views.PodRecord(f"default/p{at}", f"p{at}", "n0", wanted)
        match kind:
            case "come":
                held = [*held, pod]
            case "go":
                held = held[:number] + held[number + 1 :]
            case "become":
                held = [pod if place == number else one for place, one in enumerate(held)]
            case _:
                kept.of("n0", (*held[number:], pod))
        assert kept.of("n0", tuple(held)) == node_sums.summed(held)
