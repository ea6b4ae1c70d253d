"""What is done about a webhook configuration, by what the probes say and what stands on it."""

import pytest

from api import names, resources
from api.kubernetes.webhooks import webhook_configuration
from api.wire import durations
from manager.admission import reach, registered
from manager.admission import registration_plan as plans
from manager.reconcile import actions

NOW = 1_800_000_000.0
AWAY = reach.Standing(away=True, problem="no answer within 3 s")
BACK = reach.Standing(away=False)
UNKNOWN = reach.Standing()
RULES = [{"operations": ["CREATE"], "resources": ["pods"]}]
HELD = webhook_configuration.Withdrawal(
    durations.moment(NOW - 60), durations.moment(NOW + 540), "no answer", {"a": RULES}
)


def entry(name="a", policy="Ignore", rules=RULES):
    found = {"name": name, "failurePolicy": policy, "clientConfig": {"caBundle": "x"}}
    return {**found, "rules": rules} if rules else found


def found(*webhooks, note=None):
    return registered.Registered(
        name="koord-webhook",
        uid="u",
        version="7",
        created=0.0,
        webhooks=webhooks or (entry(),),
        note=note,
        answering=webhook_configuration.Answering(),
    )


def planned(there, standing, *, allowed=True, now=NOW):
    return plans.planned(plans.Seen(resources.MUTATING_WEBHOOKS, there, standing, allowed, now))


def parts(wanted):
    """Return the note, the webhooks and the reason told, of those that are written."""
    merges = [step for step in wanted.steps if isinstance(step, actions.Merge)]
    tells = [step.reason for step in wanted.steps if isinstance(step, actions.Tell)]
    (merge,) = merges
    assert merge.body["metadata"]["resourceVersion"] == "7", "nobody else's change is overruled"
    note = merge.body["metadata"]["annotations"][names.ANNOTATION_WITHDRAWN]
    return (
        note and webhook_configuration.withdrawal({names.ANNOTATION_WITHDRAWN: note}),
        merge.body.get("webhooks"),
        tells,
    )


def test_withdrawn_when_nobody_answers():
    note, webhooks, told = parts(planned(found(entry(), entry("b")), AWAY))
    assert note.rules == {"a": RULES, "b": RULES}
    assert note.holds(NOW + plans.HOLD_SECONDS - 1)
    assert webhooks == [entry(rules=None), entry("b", rules=None)]
    assert told == ["WebhookWithdrawn"]


def test_put_back_as_it_was():
    bare = found(entry(rules=None), entry("new", rules=None), note=HELD)
    note, webhooks, told = parts(planned(bare, BACK))
    assert note is None
    assert webhooks == [entry(), entry("new", rules=None)]
    assert told == ["WebhookRestored"]


@pytest.mark.parametrize(
    ("there", "standing", "allowed", "saying"),
    [
        pytest.param(None, AWAY, True, "nothing is registered", id="absent"),
        pytest.param(found(), BACK, True, "answers", id="answers"),
        pytest.param(found(), UNKNOWN, True, "not known", id="not known"),
        pytest.param(found(entry(rules=None)), AWAY, True, "nothing is called", id="called never"),
        pytest.param(
            found(entry(rules=None), note=HELD), AWAY, True, "stays withdrawn", id="still away"
        ),
        pytest.param(
            found(entry(rules=None), note=HELD), UNKNOWN, True, "stays withdrawn", id="new leader"
        ),
        pytest.param(
            found(note=webhook_configuration.Withdrawal("", "", "ask Ada", by_hand=True)),
            AWAY,
            True,
            "by a person",
            id="by hand",
        ),
    ],
)
def test_nothing_is_written(there, standing, allowed, saying):
    wanted = planned(there, standing, allowed=allowed)
    assert saying in wanted.message
    assert wanted.steps == ()


@pytest.mark.parametrize(
    ("webhooks", "allowed", "saying"),
    [
        pytest.param((entry(policy="Fail"),), True, "failurePolicy is Fail", id="must be asked"),
        pytest.param((entry(), entry("b", "Fail")), True, "failurePolicy", id="one must be asked"),
        pytest.param((entry(),), False, "switched off", id="owned by somebody else"),
    ],
)
def test_what_may_not_be_withdrawn_is_told(webhooks, allowed, saying):
    wanted = planned(found(*webhooks), AWAY, allowed=allowed)
    (told,) = wanted.steps
    assert isinstance(told, actions.Tell)
    assert told.reason == "WebhookUnreachable"
    assert saying in told.note


def test_a_note_is_renewed_before_it_runs_out():
    late = webhook_configuration.moment(HELD.until) - plans.HOLD_SECONDS / 2
    bare = found(entry(rules=None), note=HELD)
    assert planned(bare, AWAY, now=late - 1).steps == ()
    note, webhooks, told = parts(planned(bare, AWAY, now=late + 1))
    assert webhook_configuration.moment(note.until) > webhook_configuration.moment(HELD.until)
    assert (note.since, note.rules) == (HELD.since, HELD.rules)
    assert (webhooks, told) == (None, [])


def test_rules_that_somebody_put_back_are_taken_out_and_kept():
    other = [{"operations": ["*"]}]
    note, webhooks, _ = parts(planned(found(entry("b", rules=other), note=HELD), AWAY))
    assert webhooks == [entry("b", rules=None)]
    assert note.rules == {"a": RULES, "b": other}


def test_what_we_withdrew_is_put_back_when_that_is_switched_off():
    note, webhooks, told = parts(planned(found(entry(rules=None), note=HELD), AWAY, allowed=False))
    assert (note, webhooks, told) == (None, [entry()], ["WebhookRestored"])
