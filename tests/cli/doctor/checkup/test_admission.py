"""Certificates, webhook configurations, and what the API server said to trial pods."""

import dataclasses

import pytest

from api import names
from api.kubernetes.webhooks import webhook_configuration
from certs import issue
from cli.doctor.checkup import facts, findings
from tests.planes.install import checkups

MUTATING, VALIDATING = checkups.HOOKS


def certificates(leaf, *authorities):
    pems = tuple(authority.certificate for authority in authorities)
    return facts.Certificates(facts.OWN_CERTIFICATES, leaf.certificate if leaf else None, pems)


def configurations(authority, **changes):
    return [
        checkups.stored_configuration(kind, authority.certificate, **changes)
        for kind in checkups.HOOKS
    ]


@pytest.mark.parametrize(
    ("age", "told"),
    [(10, set()), (65, set()), (70, {"certificate.not-renewed"}), (91, {"certificate.expired"})],
)
def test_the_life_of_the_certificate(found, age, told):
    authority, leaf = checkups.pair(age=age * checkups.DAY)
    held = certificates(leaf, authority)
    assert set(found(certificates=held, webhooks=configurations(authority))) == told


def test_the_life_of_the_authority(found):
    then = checkups.NOW - 1090 * checkups.DAY
    authority = issue.authority("koord", then)
    subject = issue.Subject("webhook", dns=(checkups.SERVICE,))
    leaf = issue.leaf(authority, subject, checkups.NOW - checkups.DAY)
    told = found(certificates=certificates(leaf, authority), webhooks=configurations(authority))
    # A leaf never outlives its authority, so it is at its end as well.
    assert "the authority" in told["certificate.not-renewed"].sentence


@pytest.mark.parametrize("secret", [facts.OWN_CERTIFICATES, "my-tls"])
@pytest.mark.parametrize(
    ("exists", "says"),
    [(False, "does not exist"), (True, "holds no serving certificate")],
    ids=["absent", "empty"],
)
def test_no_certificate(found, secret, exists, says):
    told = found(certificates=facts.Certificates(secret, exists=exists))
    assert set(told) == {"certificate.missing"}
    assert told["certificate.missing"].sentence == f"Secret koordinator-system/{secret} {says}"


@pytest.mark.parametrize("age", [70, 91], ids=["not renewed", "expired"])
@pytest.mark.parametrize("is_foreign", [False, True])
def test_a_certificate_is_issued_again_by_its_issuer(found, age, is_foreign):
    authority, leaf = checkups.pair(age=age * checkups.DAY)
    held = certificates(leaf, authority)
    if is_foreign:
        held = dataclasses.replace(held, secret="my-tls")
    (told,) = found(certificates=held, webhooks=configurations(authority)).values()
    assert told.object == f"koordinator-system/{held.secret}"
    assert ("the webhook does not issue this certificate" in told.remedy) is is_foreign


def test_a_bundle_without_the_authority_is_found_in_each_configuration(found, healthy):
    stranger, _ = checkups.pair()
    first, second = configurations(stranger)
    told = found(webhooks=[first, healthy.webhooks[1]])
    assert set(told) == {"certificate.untrusted"}
    assert told["certificate.untrusted"].object == f"{MUTATING}/koord-webhook"
    assert set(found(webhooks=[healthy.webhooks[0], second])) == {"certificate.untrusted"}


@pytest.mark.parametrize("bundle", [b"", b"no certificate", b"\xff"])
def test_a_bundle_that_is_none_trusts_nobody(found, healthy, bundle):
    hooks = [checkups.stored_configuration(kind, bundle) for kind in checkups.HOOKS]
    assert set(found(webhooks=hooks)) == {"certificate.untrusted"}


def test_a_bundle_with_the_next_authority_is_trusted(found, healthy):
    authority, leaf = checkups.pair()
    following, _ = checkups.pair()
    both = issue.Pair(authority.certificate + following.certificate, b"")
    assert found(certificates=certificates(leaf, authority), webhooks=configurations(both)) == {}


@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({"failurePolicy": "Fail"}, "webhook.fails-closed", "failurePolicy Fail"),
        ({"timeoutSeconds": 30}, "webhook.timeout", "timeoutSeconds 30"),
        ({"timeoutSeconds": None}, "webhook.timeout", "timeoutSeconds 10"),
        ({"namespaceSelector": {}}, "webhook.own-namespace", "koordinator-system, kube-system"),
    ],
)
def test_traps_of_a_webhook_configuration(found, healthy, changes, name, says):
    hook = {**healthy.webhooks[0]["webhooks"][0], **changes}
    told = found(webhooks=[{**healthy.webhooks[0], "webhooks": [hook]}, healthy.webhooks[1]])
    assert set(told) == {name}
    assert says in told[name].sentence


def test_what_is_not_about_pods_may_fail_closed_and_see_its_own_namespace(found, healthy):
    changes = {
        "failurePolicy": "Fail",
        "namespaceSelector": {},
        "rules": [{"operations": ["CREATE"], "resources": ["configmaps"]}],
    }
    hook = {**healthy.webhooks[1]["webhooks"][0], **changes, "name": "vconfigmap.koordinator.sh"}
    more = {**healthy.webhooks[1], "webhooks": [*healthy.webhooks[1]["webhooks"], hook]}
    assert found(webhooks=[healthy.webhooks[0], more]) == {}


def test_without_configurations_nothing_is_probed(found):
    nobody = facts.Probe("default", mutated=False, refused=False)
    told = found(webhooks=[], probe=nobody)
    assert set(told) == {"webhook.unregistered"}


@pytest.mark.parametrize(("by_hand", "who"), [(False, "since 2027"), (True, "by hand")])
def test_a_withdrawal_is_told_with_its_reason_and_explains_the_probe(found, healthy, by_hand, who):
    reason = "no endpoint answered"
    withdrawn = [checkups.withdrawn(c, reason, by_hand=by_hand) for c in healthy.webhooks]
    nobody = facts.Probe("default", mutated=False, refused=False)
    told = found(webhooks=withdrawn, probe=nobody)
    assert set(told) == {"webhook.withdrawn"}
    assert reason in told["webhook.withdrawn"].sentence
    assert who in told["webhook.withdrawn"].sentence


def test_a_withdrawal_that_ran_out_says_nothing(found, healthy):
    withdrawn = [checkups.withdrawn(c, "x") for c in healthy.webhooks]
    assert "webhook.withdrawn" not in found(webhooks=withdrawn, now=checkups.NOW + 120)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ("namespace: koordinator-system\n", {"webhook.open-to-all"}),
        ("server: {callerBlocks: []}\n", {"webhook.open-to-all"}),
        ("server: {callerBlocks: [10.0.0.1/32]}\n", set()),
    ],
    ids=["not named", "empty", "named"],
)
def test_a_webhook_that_does_not_know_its_callers(found, healthy, settings, names):
    maps = {**healthy.config_maps, "koord-webhook": {"data": {"settings.yaml": settings}}}
    assert set(found(config_maps=maps)) == names


@pytest.mark.parametrize(
    "slices",
    [[], [{"endpoints": None}], [{"endpoints": [{"conditions": {"ready": False}}]}]],
    ids=["none", "empty", "unready"],
)
def test_a_service_without_ready_endpoints(found, slices):
    assert set(found(endpoints=slices)) == {"webhook.no-endpoint"}


def test_a_webhook_called_by_its_address_needs_no_service(found, healthy):
    authority, leaf = checkups.pair()
    hooks = []
    for kind in checkups.HOOKS:
        configuration = checkups.stored_configuration(kind, authority.certificate)
        client = configuration["webhooks"][0]["clientConfig"]
        del client["service"]
        client["url"] = "https://127.0.0.1:9876"
        hooks.append(configuration)
    told = found(webhooks=hooks, endpoints=[], certificates=certificates(leaf, authority))
    assert told == {}


def test_what_the_api_server_did_not_do(found, healthy):
    told = found(probe=facts.Probe("default", mutated=False, refused=False))
    assert set(told) == {"webhook.mutation-unreached", "webhook.validation-unreached"}


def test_observe_mode_explains_why_nothing_was_changed(found, healthy):
    note = {
        names.ANNOTATION_ADMISSION: webhook_configuration.text(
            webhook_configuration.Answering("observe")
        )
    }
    metadata = {**healthy.webhooks[0]["metadata"], "annotations": note}
    hooks = [{**healthy.webhooks[0], "metadata": metadata}, healthy.webhooks[1]]
    told = found(webhooks=hooks, probe=facts.Probe("default", mutated=False, refused=True))
    assert told["webhook.mutation-unreached"].sentence.endswith("(the webhook is set to observe)")


def test_a_probe_that_somebody_else_refused_is_no_proof(found, healthy):
    quota = facts.Unknown("mutating webhook", "a trial pod was refused: exceeded quota")
    probe = dataclasses.replace(healthy.probe, mutated=quota)
    told = found(probe=probe)
    assert told["webhook"].severity is findings.Severity.UNKNOWN
    assert "exceeded quota" in told["webhook"].sentence
