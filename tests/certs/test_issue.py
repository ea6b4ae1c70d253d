"""Issued certificates convince strict verifiers, and only for what they were issued for."""

import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs import issue

NOW = 1_800_000_000.0
SUBJECT = issue.Subject(
    "webhook", dns=("webhook.koordinator-system.svc", "localhost"), ips=("127.0.0.1", "::1")
)


@pytest.fixture(scope="module")
def authority() -> issue.Pair:
    return issue.authority("koord", NOW)


@pytest.fixture(scope="module")
def leaf(authority: issue.Pair) -> issue.Pair:
    return issue.leaf(authority, SUBJECT, NOW)


@pytest.mark.parametrize(
    "name", ["webhook.koordinator-system.svc", "localhost", "127.0.0.1", "::1"]
)
def test_leaf_verifies_for_each_of_its_names(
    authority: issue.Pair, leaf: issue.Pair, name: str
) -> None:
    assert issue.problem(leaf, authority.certificate, name, NOW) is None


@pytest.mark.parametrize(
    ("name", "now", "expected"),
    [
        pytest.param("other.svc", NOW, "not trusted for other.svc", id="another name"),
        pytest.param("127.0.0.2", NOW, "not trusted for 127.0.0.2", id="another address"),
        pytest.param("localhost", NOW + issue.LEAF_SECONDS + 1, "not trusted", id="ended"),
        pytest.param("localhost", NOW - issue.SKEW_SECONDS - 1, "not trusted", id="not begun"),
    ],
)
def test_leaf_is_refused_outside_its_names_and_life(
    authority: issue.Pair, leaf: issue.Pair, name: str, now: float, expected: str
) -> None:
    found = issue.problem(leaf, authority.certificate, name, now)
    assert found is not None
    assert found.startswith(expected)


def test_leaf_is_refused_by_a_foreign_bundle_and_accepted_by_an_overlapping_one(
    authority: issue.Pair, leaf: issue.Pair
) -> None:
    foreign = issue.authority("koord", NOW)
    assert issue.problem(leaf, foreign.certificate, "localhost", NOW) is not None
    both = foreign.certificate + authority.certificate
    assert issue.problem(leaf, both, "localhost", NOW) is None


def test_key_of_another_pair_is_noticed(authority: issue.Pair, leaf: issue.Pair) -> None:
    mixed = issue.Pair(leaf.certificate, issue.leaf(authority, SUBJECT, NOW).key)
    found = issue.problem(mixed, authority.certificate, "localhost", NOW)
    assert found == "the private key does not belong to the certificate"


def test_leaf_has_what_clients_ask_for(leaf: issue.Pair) -> None:
    certificate = issue.read(leaf.certificate)
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert certificate.not_valid_before_utc == datetime.datetime.fromtimestamp(
        NOW - issue.SKEW_SECONDS, tz=datetime.UTC
    )
    assert certificate.serial_number.bit_length() > 64


def test_leaf_never_outlives_its_authority(authority: issue.Pair) -> None:
    short = issue.authority("short", NOW, seconds=issue.DAY)
    ends = issue.read(issue.leaf(short, SUBJECT, NOW).certificate).not_valid_after_utc
    assert ends == issue.read(short.certificate).not_valid_after_utc
    with pytest.raises(issue.CertificateError, match="authority short has ended"):
        issue.leaf(short, SUBJECT, NOW + issue.DAY)


def test_carries_compares_names_and_purpose(leaf: issue.Pair) -> None:
    assert issue.carries(leaf.certificate, SUBJECT)
    assert not issue.carries(leaf.certificate, issue.Subject("webhook", dns=("localhost",)))
    caller = issue.Subject(SUBJECT.name, SUBJECT.dns, SUBJECT.ips, client=True)
    assert not issue.carries(leaf.certificate, caller)


def test_very_long_name_still_gives_a_certificate(authority: issue.Pair) -> None:
    name = f"{'x' * 60}.{'y' * 60}.svc"
    leaf = issue.leaf(authority, issue.Subject(name, dns=(name,)), NOW)
    assert issue.problem(leaf, authority.certificate, name, NOW) is None


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        pytest.param(issue.Subject("x"), "at least one DNS name or address", id="no names"),
        pytest.param(issue.Subject("x", ips=("10.0.0",)), "10.0.0 is not an IP", id="bad address"),
    ],
)
def test_unusable_subject_is_refused(
    authority: issue.Pair, subject: issue.Subject, message: str
) -> None:
    with pytest.raises(issue.CertificateError, match=message):
        issue.leaf(authority, subject, NOW)


@pytest.mark.parametrize("pem", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_garbage_is_named(leaf: issue.Pair, pem: bytes) -> None:
    with pytest.raises(issue.CertificateError, match="not a PEM certificate"):
        issue.read(pem)
    with pytest.raises(issue.CertificateError, match="not a PEM private key"):
        issue.read_key(pem)
    assert issue.problem(issue.Pair(pem, leaf.key), leaf.certificate, "x", NOW) is not None


def test_version_that_does_not_exist_is_named(leaf: issue.Pair) -> None:
    der = ssl.PEM_cert_to_DER_cert(leaf.certificate.decode())
    third, eighth = bytes.fromhex("a003020102"), bytes.fromhex("a003020107")
    assert third in der
    pem = ssl.DER_cert_to_PEM_cert(der.replace(third, eighth, 1)).encode()
    with pytest.raises(issue.CertificateError, match="7 is not a valid X509 version"):
        issue.read(pem)


def test_key_never_shows_in_a_repr(leaf: issue.Pair) -> None:
    assert b"PRIVATE" in leaf.key
    assert "PRIVATE" not in repr(leaf)
