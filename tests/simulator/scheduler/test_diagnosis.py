from simulator.scheduler import diagnosis, intree


def refusals(**reasons):
    return {name: intree.Refusal("p", texts) for name, texts in reasons.items()}


def test_reasons_are_counted_and_sorted_as_text():
    refused = diagnosis.Refused(
        refusals(a=("Insufficient cpu",), b=("why",), c=("Insufficient cpu", "Too many pods")), 4
    )
    expected = "0/4 nodes are available: 1 Too many pods, 1 why, 2 Insufficient cpu."
    assert diagnosis.sentence(refused) == expected


def test_a_silent_refusal_is_not_counted():
    refused = diagnosis.Refused({"a": intree.Refusal("Extender", ())}, 1)
    assert diagnosis.sentence(refused) == "0/1 nodes are available."


def test_preemption_adds_its_part():
    refused = diagnosis.Refused(
        {
            "a": intree.Refusal("NodeResourcesFit", ("Insufficient cpu",)),
            "b": intree.Refusal("Extender", ("why",), resolvable=False),
        },
        2,
    )
    assert diagnosis.sentence(refused, diagnosis.no_victims(refused)) == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 why. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_without_nodes_there_is_nothing_to_count():
    assert diagnosis.sentence(diagnosis.Refused({}, 0)) == "no nodes available to schedule pods"


def test_a_pod_waits_for_whoever_refused_it():
    refused = diagnosis.Refused({"a": intree.Refusal("x", ()), "b": intree.Refusal("y", ())}, 2)
    assert refused.plugins == {"x", "y"}


def test_a_long_note_is_cut():
    assert len(diagnosis.shortened("x" * 5000)) == diagnosis.LONGEST_NOTE
    assert diagnosis.shortened("short") == "short"
