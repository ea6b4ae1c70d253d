"""Carry out a rotation plan on certificates and keys held in memory."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from certs import issue, rotation

BUNDLE = "bundle.crt"
STATE = "rotation.json"

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_PREFIX = "ca-"


@dataclasses.dataclass(frozen=True, slots=True)
class Keep:
    """Everything that has to be kept between two looks: what was issued, and when."""

    state: rotation.State = dataclasses.field(default_factory=rotation.State)
    authorities: Mapping[str, issue.Pair] = dataclasses.field(default_factory=dict)
    leaves: Mapping[str, issue.Pair] = dataclasses.field(default_factory=dict)

    @property
    def bundle(self) -> bytes:
        """What clients have to trust, oldest authority first."""
        return b"".join(self.authorities[one.id].certificate for one in self.state.authorities)


def advance(
    keep: Keep, subjects: Sequence[issue.Subject], now: float, policy: rotation.Policy
) -> tuple[Keep, tuple[str, ...]]:
    """Do what is due at this instant; also return a sentence for each thing done."""
    for subject in subjects:
        if not _NAME.fullmatch(subject.name) or subject.name.startswith(_PREFIX):
            raise issue.CertificateError(
                f"{subject.name!r} cannot name a certificate: use lower-case letters, digits,"
                f" dots and dashes, and do not begin with {_PREFIX}"
            )
    keep = _without_unfit(keep, subjects, now)
    wanted = {subject.name: subject for subject in subjects}
    done: list[str] = []
    while (step := rotation.plan(keep.state, tuple(wanted), now, policy)) is not None:
        keep = _do(keep, step, wanted, now, policy)
        done.append(step.reason)
    return keep, tuple(done)


def encode(keep: Keep) -> dict[str, bytes]:
    """Return the files, or the data of a Secret, that hold all of it."""
    state = [
        {"id": one.id, "published": one.published, "lastLeaf": one.last_leaf}
        for one in keep.state.authorities
    ]
    files = {BUNDLE: keep.bundle, STATE: json.dumps({"version": 1, "authorities": state}).encode()}
    for name, pair in keep.authorities.items():
        files |= {f"{_PREFIX}{name}.crt": pair.certificate, f"{_PREFIX}{name}.key": pair.key}
    for name, pair in keep.leaves.items():
        files |= {f"{name}.crt": pair.certificate, f"{name}.key": pair.key}
    return files


def decode(files: Mapping[str, bytes]) -> Keep:
    """Return what files hold; a leaf that was only half written is left out, to be issued anew."""
    if STATE not in files:
        return Keep()
    state = rotation.State()
    authorities: dict[str, issue.Pair] = {}
    for name, published, last_leaf in _recorded(files[STATE]):
        pair = _pair(files, f"{_PREFIX}{name}")
        if pair is None:
            continue
        authorities[name] = pair
        begins, ends = _life(issue.read(pair.certificate))
        state = rotation.published(
            state, rotation.Authority(name, begins, ends, published, last_leaf)
        )
    leaves: dict[str, issue.Pair] = {}
    for file in sorted(files):
        name = file.removesuffix(".crt")
        if file in (name, BUNDLE) or file.startswith(_PREFIX):
            continue
        pair = _pair(files, name)
        signer = None if pair is None else _signer(pair, authorities)
        if pair is not None and signer is not None:
            leaves[name] = pair
            begins, ends = _life(issue.read(pair.certificate))
            state = rotation.signed(state, rotation.Leaf(name, signer, begins, ends))
    return Keep(state, authorities, leaves)


def _do(
    keep: Keep,
    step: rotation.Step,
    wanted: Mapping[str, issue.Subject],
    now: float,
    policy: rotation.Policy,
) -> Keep:
    match step:
        case rotation.Publish():
            pair = issue.authority(f"koord-{now:.0f}", now, seconds=policy.authority_seconds)
            certificate = issue.read(pair.certificate)
            name = certificate.fingerprint(hashes.SHA256()).hex()[:16]
            authority = rotation.Authority(name, *_life(certificate), published=now)
            return dataclasses.replace(
                keep,
                state=rotation.published(keep.state, authority),
                authorities={**keep.authorities, name: pair},
            )
        case rotation.Sign(name, signer):
            pair = issue.leaf(
                keep.authorities[signer], wanted[name], now, seconds=policy.leaf_seconds
            )
            leaf = rotation.Leaf(name, signer, *_life(issue.read(pair.certificate)))
            return dataclasses.replace(
                keep,
                state=rotation.signed(keep.state, leaf),
                leaves={**keep.leaves, name: pair},
            )
        case rotation.Withdraw(gone):
            rest = {name: pair for name, pair in keep.authorities.items() if name != gone}
            return dataclasses.replace(
                keep, state=rotation.withdrawn(keep.state, gone), authorities=rest
            )


def _without_unfit(keep: Keep, subjects: Sequence[issue.Subject], now: float) -> Keep:
    """Leave out leaves that do not carry the wanted names or do not verify at all."""
    unfit = set()
    for subject in subjects:
        pair = keep.leaves.get(subject.name)
        if pair is None:
            continue
        first = (*subject.dns, *subject.ips)[0]
        ended = _life(issue.read(pair.certificate))[1] <= now
        if not ended and (
            not issue.carries(pair.certificate, subject)
            or issue.problem(pair, keep.bundle, first, now) is not None
        ):
            unfit.add(subject.name)
    leaves = tuple(leaf for leaf in keep.state.leaves if leaf.name not in unfit)
    return dataclasses.replace(
        keep,
        state=dataclasses.replace(keep.state, leaves=leaves),
        leaves={name: pair for name, pair in keep.leaves.items() if name not in unfit},
    )


def _recorded(text: bytes) -> list[tuple[str, float, float]]:
    try:
        found = json.loads(text)
        return [
            (str(one["id"]), float(one["published"]), float(one["lastLeaf"]))
            for one in found["authorities"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise issue.CertificateError(
            f"{STATE} cannot be read ({error}); move the certificate files away to start over"
        ) from error


def _pair(files: Mapping[str, bytes], name: str) -> issue.Pair | None:
    certificate, key = files.get(f"{name}.crt"), files.get(f"{name}.key")
    if certificate is None or key is None:
        return None
    try:
        if issue.read(certificate).public_key() != issue.read_key(key).public_key():
            return None
    except issue.CertificateError:
        return None
    return issue.Pair(certificate, key)


def _signer(pair: issue.Pair, authorities: Mapping[str, issue.Pair]) -> str | None:
    certificate = issue.read(pair.certificate)
    for name, authority in authorities.items():
        if issue.signed_by(certificate, issue.read(authority.certificate)):
            return name
    return None


def _life(certificate: x509.Certificate) -> tuple[float, float]:
    return (
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
    )
