"""Gates: defaults, stages, and misspelt names."""

import pytest

from process.configuration.features import Gate, GateError, Gates, Stage

DECLARED = (
    Gate("PodMutatingWebhook", True, Stage.BETA, "Mutates pods."),
    Gate("MultiQuotaTree", False, Stage.ALPHA, "Several quota trees."),
    Gate("WebhookFramework", True, Stage.GA, "All webhooks."),
    Gate("OldWay", False, Stage.DEPRECATED, "The old way."),
)


@pytest.mark.parametrize(
    ("chosen", "name", "expected"),
    [
        pytest.param({}, "PodMutatingWebhook", True, id="default on"),
        pytest.param({}, "MultiQuotaTree", False, id="default off"),
        pytest.param({"MultiQuotaTree": True}, "MultiQuotaTree", True, id="switched on"),
        pytest.param({"PodMutatingWebhook": False}, "PodMutatingWebhook", False, id="switched off"),
        pytest.param({"WebhookFramework": True}, "WebhookFramework", True, id="ga set to itself"),
    ],
)
def test_value_is_the_chosen_or_the_default(
    chosen: dict[str, bool], name: str, expected: bool
) -> None:
    assert Gates(DECLARED, chosen).enabled(name) is expected


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        pytest.param({"PodMutateWebhook": True}, "did you mean PodMutatingWebhook", id="misspelt"),
        pytest.param({"multiquotatree": True}, "did you mean MultiQuotaTree", id="case"),
        pytest.param(
            {"Zzz": True}, "unknown feature gate Zzz \\(known: MultiQuotaTree", id="none near"
        ),
        pytest.param({"WebhookFramework": False}, "generally available", id="ga switched off"),
        pytest.param({"Zzz": True, "Yyy": True}, "Zzz.*\n.*Yyy", id="all at once"),
    ],
)
def test_wrong_choices_are_start_up_errors(chosen: dict[str, bool], message: str) -> None:
    with pytest.raises(GateError, match=message):
        Gates(DECLARED, chosen)


def test_asking_for_an_undeclared_gate_is_an_error() -> None:
    with pytest.raises(GateError, match="unknown feature gate PodMutating"):
        Gates(DECLARED).enabled("PodMutating")


def test_declarations_are_checked() -> None:
    with pytest.raises(GateError, match="alpha feature is off by default"):
        Gate("New", True, Stage.ALPHA, "x")
    with pytest.raises(GateError, match="declared twice"):
        Gates([*DECLARED, Gate("OldWay", False, Stage.BETA, "x")])


def test_deprecated_choice_warns_and_all_are_listed() -> None:
    gates = Gates(DECLARED, {"OldWay": True})
    assert gates.warnings() == ("feature gate OldWay is deprecated and will go away",)
    assert [(gate.name, on) for gate, on in gates.describe()] == [
        ("MultiQuotaTree", False),
        ("OldWay", True),
        ("PodMutatingWebhook", True),
        ("WebhookFramework", True),
    ]
