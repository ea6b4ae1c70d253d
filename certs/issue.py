"""Issue certificates: an authority and the leaves it signs; PEM in, PEM out."""

import dataclasses
import datetime
import ipaddress

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = 24 * 3600.0
AUTHORITY_SECONDS = 3 * 365 * DAY
LEAF_SECONDS = 90 * DAY

# Clients whose clock is behind ours must not find a fresh certificate "not valid yet".
SKEW_SECONDS = 3600.0

_NAME_LENGTH = 64


class CertificateError(ValueError):
    """A certificate, key or name that cannot be used; the text says which and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """Whom a leaf certificate is for."""

    name: str
    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    client: bool = False
    """The certificate also identifies a caller, not only a server."""


def authority(name: str, now: float, *, seconds: float = AUTHORITY_SECONDS) -> Pair:
    """Create a certificate authority that signs leaves only."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _builder(subject, subject, key.public_key(), now, now + seconds)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def leaf(signer: Pair, subject: Subject, now: float, *, seconds: float = LEAF_SECONDS) -> Pair:
    """Create a certificate signed by an authority; it never outlives the authority."""
    alternatives = _alternatives(subject)
    issuer = read(signer.certificate)
    ends = min(now + seconds, issuer.not_valid_after_utc.timestamp())
    if ends <= now:
        raise CertificateError(f"authority {common_name(issuer)} has ended; issue a new one first")
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH]
    if subject.client:
        purposes.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        _builder(_name(subject.name), issuer.subject, key.public_key(), now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(read_key(signer.key), hashes.SHA256())
    )
    return _pair(certificate, key)


def read(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a PEM text."""
    return read_all(pem)[0]


def read_all(pem: bytes) -> list[x509.Certificate]:
    """Return every certificate of a PEM text."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except (ValueError, x509.InvalidVersion) as error:
        raise CertificateError(f"not a PEM certificate: {error}") from error


def read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Return the private key of a PEM text."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError("not a PEM private key without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("the private key is not an elliptic curve key; issue a new pair")
    return key


def common_name(certificate: x509.Certificate) -> str:
    """Return the common name of a certificate's subject."""
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else certificate.subject.rfc4514_string()


def problem(pair: Pair, bundle: bytes, name: str, now: float) -> str | None:
    """Return why a client that trusts the bundle would refuse the pair, None when it would not."""
    try:
        certificate, trusted = read(pair.certificate), read_all(bundle)
        if certificate.public_key() != read_key(pair.key).public_key():
            return "the private key does not belong to the certificate"
        verifier = (
            verification.PolicyBuilder()
            .store(verification.Store(trusted))
            .time(_moment(now))
            .build_server_verifier(_alternative(name))
        )
        verifier.verify(certificate, [])
    except CertificateError as error:
        return str(error)
    except verification.VerificationError as error:
        return f"not trusted for {name}: {error}"
    return None


def carries(pem: bytes, subject: Subject) -> bool:
    """Tell whether a certificate is for exactly the names of a subject."""
    extensions = read(pem).extensions
    names = set(extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    purposes = set(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    calls = ExtendedKeyUsageOID.CLIENT_AUTH in purposes
    return names == set(_alternatives(subject)) and calls == subject.client


def signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Tell whether an authority has signed a certificate."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _alternatives(subject: Subject) -> list[x509.GeneralName]:
    if not subject.dns and not subject.ips:
        raise CertificateError(f"certificate {subject.name}: give at least one DNS name or address")
    return [
        *(x509.DNSName(name) for name in subject.dns),
        *(x509.IPAddress(_address(text)) for text in subject.ips),
    ]


def _alternative(name: str) -> x509.DNSName | x509.IPAddress:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise CertificateError(f"{text} is not an IP address") from error


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_NAME_LENGTH])])


def _moment(instant: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(instant), tz=datetime.UTC)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: float, ends: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_moment(now - SKEW_SECONDS))
        .not_valid_after(_moment(ends))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
