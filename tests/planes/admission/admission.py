"""An admission webhook whose answer a test writes, on a certificate of its own."""

import base64
import contextlib
import datetime
import ipaddress
import json
import ssl

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ADDRESS = "127.0.0.1"


def self_signed(*names):
    """Return a certificate for the loopback address and these names, and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "webhook")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address(ADDRESS))
    alternative = x509.SubjectAlternativeName([address, *map(x509.DNSName, names)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=365 * 30))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM), secret


class Hook:
    """Allows everything until `answer`, an async function of the request, is replaced."""

    def __init__(self, certificate):
        self.certificate = certificate
        self.url = ""
        self.port = 0
        self.requests = []
        self.answer = self.allow

    @staticmethod
    async def allow(request):
        return {"allowed": True}

    @staticmethod
    def patching(*operations):
        async def answer(request):
            patch = base64.b64encode(json.dumps(operations).encode()).decode()
            return {"allowed": True, "patchType": "JSONPatch", "patch": patch}

        return answer

    @staticmethod
    def denying(message, code=403):
        async def answer(request):
            return {"allowed": False, "status": {"message": message, "code": code}}

        return answer

    def configuration(self, name, kind, **changes):
        """A configuration that calls this hook for ConfigMaps with the label `hooked: name`."""
        bundle = base64.b64encode(self.certificate).decode()
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["configmaps"],
        }
        hook = {
            "name": f"{name}.example.koord.sh",
            "clientConfig": {"url": self.url, "caBundle": bundle},
            "rules": [rule],
            "objectSelector": {"matchLabels": {"hooked": name}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
            **changes,
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [hook],
        }

    def behind(self, namespace, name):
        """The clientConfig that calls this hook by Service."""
        bundle = base64.b64encode(self.certificate).decode()
        service = {"namespace": namespace, "name": name, "path": "/admit", "port": 443}
        return {"service": service, "caBundle": bundle}

    async def _handle(self, request):
        review = json.loads(await request.read())
        self.requests.append(review["request"])
        response = await self.answer(review["request"])
        return web.json_response(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": review["request"]["uid"], **response},
            }
        )


@contextlib.asynccontextmanager
async def listening(folder, *names, address=ADDRESS):
    """A hook on a TLS port of its own, also under these names; key material goes to `folder`."""
    certificate, key = self_signed(*names)
    pair = folder / "webhook.pem"
    pair.write_bytes(certificate + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair)
    hook = Hook(certificate)
    app = web.Application()
    app.router.add_post("/{path:.*}", hook._handle)
    runner = web.AppRunner(app, keepalive_timeout=3600, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, 0, ssl_context=context)
        await site.start()
        hook.port = runner.addresses[0][1]
        hook.url = f"https://{address}:{hook.port}/admit"
        yield hook
    finally:
        await runner.cleanup()
