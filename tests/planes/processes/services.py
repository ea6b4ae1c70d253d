"""A Service whose endpoints are processes of this machine, for API servers that route to them."""

import ipaddress
import socket

import pytest


def own_address():
    """An address of this machine that may be an endpoint; loopback ones may not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing; it only asks for the route.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback, which no Service may point at")
        address = probe.getsockname()[0]
    if ipaddress.ip_address(address).is_loopback:
        pytest.skip("this machine has no address but loopback, which no Service may point at")
    return address


async def point(api, namespace, name, *target_ports, port=443, address=""):
    """Make the Service, or let it point elsewhere: `port` of it is these ports of the address.

    Releases before 1.33 route by Endpoints, later ones by EndpointSlices, so there are both.
    """
    address = address or own_address()
    await _put(api, f"/api/v1/namespaces/{namespace}/services", name, _service(name, port))
    listed = [[{"name": "https", "port": one, "protocol": "TCP"}] for one in target_ports]
    endpoints = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        # Else the controllers would make a second slice out of it.
        "metadata": {"name": name, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": ports} for ports in listed],
    }
    await _put(api, f"/api/v1/namespaces/{namespace}/endpoints", name, endpoints)
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    for number, ports in enumerate(listed):
        piece = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{name}-{number}" if number else name,
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": ports,
        }
        await _put(api, path, piece["metadata"]["name"], piece)


def _service(name, port):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"name": "https", "port": port, "protocol": "TCP"}]},
    }


async def _put(api, collection, name, body):
    query = {"fieldManager": "tests", "force": "true"}
    await api.patch(f"{collection}/{name}", body, "application/apply-patch+yaml", **query)
