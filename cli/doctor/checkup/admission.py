"""Whether the webhook is trusted, reachable, and unable to hurt."""

import base64
import binascii
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from api.kubernetes import selectors
from api.kubernetes.webhooks import webhook_configuration
from certs import issue
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap

NAME: Final = "koord-webhook"
LONGEST_TIMEOUT: Final = 5
DAY: Final = 24 * 3600.0
_FOREIGN: Final = (
    "the webhook does not issue this certificate: let its issuer write tls.crt, tls.key and ca.crt "
    "into the Secret, and caBundle hold the authority that signed it"
)
"""What helps with a Secret that another issuer fills."""

NO_SECRET = Trap(
    "certificate.missing", Severity.ERROR, "The Secret with the webhook's certificate is missing "
    "or holds no certificate", "the webhook issues it when it starts: look at its log",
)  # fmt: skip
EXPIRED = Trap(
    "certificate.expired", Severity.ERROR, "The webhook's certificate, or its authority, has ended",
    "delete the Secret koord-webhook-certificates and restart the webhook: it issues anew",
)  # fmt: skip
NOT_RENEWED = Trap(
    "certificate.not-renewed", Severity.WARNING,
    "The webhook's certificate is past two thirds of its life and was not renewed",
    "look at the webhook's log; it renews by itself while it runs and may write the Secret",
)  # fmt: skip
UNTRUSTED = Trap(
    "certificate.untrusted", Severity.ERROR,
    "The CA bundle in a webhook configuration does not contain the authority that signed the "
    "webhook's certificate: the API server refuses to call it",
    "restart the webhook, which writes the bundle; where GitOps owns the configuration, let it "
    "ignore caBundle",
)  # fmt: skip
UNREGISTERED = Trap(
    "webhook.unregistered", Severity.WARNING,
    "A webhook configuration is not registered: pods are created unchanged",
    "look at the webhook's pods and log; it registers itself when it runs",
)  # fmt: skip
WITHDRAWN = Trap(
    "webhook.withdrawn", Severity.WARNING,
    "The webhook was withdrawn: pods are created unchanged and unchecked",
    "if the manager did it: look at the webhook's pods, it is restored when they answer; if a "
    "person did: remove the annotation koord.sh/withdrawn from the configuration object",
)  # fmt: skip
FAILS_CLOSED = Trap(
    "webhook.fails-closed", Severity.WARNING,
    "failurePolicy is Fail for pods: while no webhook answers, no pod can be created",
    "set registration.failurePolicy: Ignore for the webhook",
)  # fmt: skip
SLOW = Trap(
    "webhook.timeout", Severity.WARNING,
    "timeoutSeconds exceeds 5: a silent webhook delays every pod by as much",
    "set registration.timeoutSeconds: 3 for the webhook",
)  # fmt: skip
OWN_NAMESPACE = Trap(
    "webhook.own-namespace", Severity.ERROR,
    "The webhook is asked about pods of its own namespace or of kube-system: it could keep itself "
    "from starting",
    "restart the webhook, which writes the namespaceSelector; where GitOps owns it, exclude both",
)  # fmt: skip
OPEN_TO_ALL = Trap(
    "webhook.open-to-all", Severity.WARNING,
    "Everybody in the cluster may connect to the webhook, and counts as much as an API server when "
    "its connections run out",
    "name the addresses of your API servers in the value networkPolicy.apiServerBlocks",
)  # fmt: skip
NO_ENDPOINT = Trap(
    "webhook.no-endpoint", Severity.ERROR, "No pod behind the webhook's Service is ready",
    "look at the webhook's pods and its Service",
)  # fmt: skip
MUTATION_UNREACHED = Trap(
    "webhook.mutation-unreached", Severity.ERROR,
    "The API server did not get a pod changed by the mutating webhook",
    "look at the API server's log for failed calls; check the NetworkPolicy, the certificate and "
    "whether the webhook is in observe mode",
)  # fmt: skip
VALIDATION_UNREACHED = Trap(
    "webhook.validation-unreached", Severity.ERROR,
    "The API server accepted a pod that the validating webhook refuses",
    "look at the API server's log for failed calls; check the NetworkPolicy, the certificate and "
    "whether the webhook is in observe mode",
)  # fmt: skip

CERTIFICATE_TRAPS = (NO_SECRET, EXPIRED, NOT_RENEWED, UNTRUSTED)
WEBHOOK_TRAPS = (
    UNREGISTERED, WITHDRAWN, FAILS_CLOSED, SLOW, OWN_NAMESPACE, OPEN_TO_ALL, NO_ENDPOINT,
    MUTATION_UNREACHED, VALIDATION_UNREACHED,
)  # fmt: skip


def ours(known: facts.Facts) -> list[facts.Raw]:
    """Return our webhook configuration objects."""
    return [c for c in facts.given(known.webhooks) if facts.name(c) == NAME]


def certificates(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look how long the certificate is good, and whether the API server trusts it."""
    held = facts.given(known.certificates)
    where = f"{known.namespace}/{held.secret}"
    remedy = _FOREIGN if held.is_foreign else ""
    if held.leaf is None:
        what = "holds no serving certificate" if held.exists else "does not exist"
        yield NO_SECRET.found(f"Secret {where} {what}", where, remedy=remedy)
        return
    yield from _life("the serving certificate", held.leaf, known.now, (where, remedy))
    leaf = issue.read(held.leaf)
    signers = [pem for pem in held.authorities if issue.signed_by(leaf, issue.read(pem))]
    for pem in signers:
        yield from _life("the authority", pem, known.now, (where, remedy))
    for configuration in ours(known):
        kind = configuration.get("kind", "")
        strangers = [
            str(hook.get("name"))
            for hook in facts.stated(configuration, "webhooks")
            if not _trusts(hook, held.leaf)
        ]
        if strangers:
            yield UNTRUSTED.found(
                f"{kind} {NAME}: caBundle of {', '.join(strangers)} does not verify the "
                "certificate in the Secret",
                f"{kind}/{NAME}",
                remedy=remedy,
            )


def _life(what: str, pem: bytes, now: float, secret: tuple[str, str]) -> Iterator[findings.Finding]:
    where, remedy = secret
    certificate = issue.read(pem)
    begins = certificate.not_valid_before_utc.timestamp()
    ends = certificate.not_valid_after_utc.timestamp()
    if now >= ends:
        ago = (now - ends) / DAY
        yield EXPIRED.found(f"{what} in {where} ended {ago:.1f} days ago", where, remedy=remedy)
    # A twelfth of grace: renewal is due at two thirds and tried every minute.
    elif now > begins + (ends - begins) * 3 / 4:
        left = (ends - now) / DAY
        yield NOT_RENEWED.found(f"{what} in {where} ends in {left:.1f} days", where, remedy=remedy)


def _trusts(hook: facts.Raw, leaf: bytes) -> bool:
    try:
        bundle = base64.b64decode((hook.get("clientConfig") or {}).get("caBundle") or "")
        authorities = issue.read_all(bundle) if bundle else []
    except (binascii.Error, issue.CertificateError):
        return False
    certificate = issue.read(leaf)
    return any(issue.signed_by(certificate, authority) for authority in authorities)


def webhooks(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look whether the webhook is registered without traps, and reached."""
    configurations = ours(known)
    there = {c.get("kind") for c in configurations if facts.stated(c, "webhooks")}
    withdrawn = list(_withdrawn(configurations, known.now))
    yield from withdrawn
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        if kind not in there:
            yield UNREGISTERED.found(f"{kind} {NAME} has no webhooks", f"{kind}/{NAME}")
    for configuration in configurations:
        for hook in facts.stated(configuration, "webhooks"):
            yield from _hook(known.namespace, f"{configuration.get('kind')}/{NAME}", hook)
    yield from _callers(known)
    if _calls_service(configurations):
        slices = facts.given(known.endpoints)
        if not any(_is_ready(e) for s in slices for e in facts.stated(s, "endpoints")):
            yield NO_ENDPOINT.found(
                f"Service {known.namespace}/{NAME} has no ready endpoint",
                f"{known.namespace}/{NAME}",
            )
    if there and not withdrawn:
        yield from reached(facts.given(known.probe), modes(configurations))


def _callers(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look whether the webhook knows who its callers are."""
    written = facts.settings(facts.given(known.config_maps), "webhook")
    if written and not facts.section(written, "server").get("callerBlocks"):
        yield OPEN_TO_ALL.found(
            "server.callerBlocks of the webhook is empty", f"{known.namespace}/{NAME}"
        )


def _calls_service(configurations: Sequence[facts.Raw]) -> bool:
    return any(
        (hook.get("clientConfig") or {}).get("service")
        for configuration in configurations
        for hook in facts.stated(configuration, "webhooks")
    )


def _is_ready(endpoint: facts.Raw) -> bool:
    # An endpoint that says nothing about itself counts as ready.
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _hook(namespace: str, thing: str, hook: facts.Raw) -> Iterator[findings.Finding]:
    name = hook.get("name")
    asks_pods = any("pods" in facts.stated(r, "resources") for r in facts.stated(hook, "rules"))
    if asks_pods and hook.get("failurePolicy") == "Fail":
        yield FAILS_CLOSED.found(f"{name} has failurePolicy Fail", thing)
    seconds = int(hook.get("timeoutSeconds") or 10)
    if seconds > LONGEST_TIMEOUT:
        yield SLOW.found(f"{name} has timeoutSeconds {seconds}", thing)
    selector = hook.get("namespaceSelector") or {}
    reached = [
        one
        for one in dict.fromkeys((namespace, "kube-system"))
        if asks_pods and selectors.matches(selector, {"kubernetes.io/metadata.name": one})
    ]
    if reached:
        yield OWN_NAMESPACE.found(f"{name} is asked about pods in {', '.join(reached)}", thing)


def _withdrawn(configurations: Sequence[facts.Raw], now: float) -> Iterator[findings.Finding]:
    for configuration in configurations:
        note = webhook_configuration.withdrawal(facts.meta(configuration, "annotations"))
        if note is None or not note.holds(now):
            continue
        thing = f"{configuration.get('kind')}/{NAME}"
        who = "by hand" if note.by_hand else f"since {note.since}"
        yield WITHDRAWN.found(f"{thing} is withdrawn {who}: {note.reason}", thing)


def modes(configurations: Sequence[facts.Raw]) -> set[str]:
    """Return the modes of the webhook in which it does not act."""
    return {
        webhook_configuration.answering(facts.meta(c, "annotations")).mode for c in configurations
    } - {"enforce"}


def reached(probe: facts.Probe, idle: Collection[str]) -> Iterator[findings.Finding]:
    """Look what the webhook did with trial pods."""
    observing = f" (the webhook is set to {', '.join(sorted(idle))})" if idle else ""
    for answer, trap, sentence in (
        (probe.mutated, MUTATION_UNREACHED, "came back unchanged"),
        (probe.refused, VALIDATION_UNREACHED, "was accepted though it contradicts itself"),
    ):
        if isinstance(answer, facts.Unknown):
            yield findings.could_not("webhook", answer)
        elif not answer:
            yield trap.found(
                f"a trial pod in {probe.namespace} (dry run) {sentence}{observing}",
                probe.namespace,
            )


CHECKS = (
    findings.Check(
        "certificate", "the webhook's certificate is good and trusted", CERTIFICATE_TRAPS,
        certificates,
    ),
    findings.Check(
        "webhook", "the API server reaches the webhook, which fails open and fast", WEBHOOK_TRAPS,
        webhooks,
    ),
)  # fmt: skip
