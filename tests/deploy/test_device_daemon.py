"""The device daemon among the plain manifests: no privilege, and settings that load."""

import pytest
import yaml

from agent.device_daemon import output
from agent.device_daemon import settings as daemon_settings
from tests.planes.install import chart, plain

FOLDER = plain.MANIFESTS / "components/device-daemon"


@pytest.fixture
def documents():
    return [
        document
        for path in plain.files(FOLDER)
        for document in yaml.safe_load_all(path.read_text())
    ]


@pytest.fixture
def pod(documents):
    workload = plain.named(documents, "DaemonSet", "koord-device-daemon")
    return workload["spec"]["template"]["spec"]


def test_it_is_part_of_no_installation_by_itself():
    for mode in chart.MODES:
        named = [one["metadata"]["name"] for one in plain.documents(mode)]
        assert "koord-device-daemon" not in named


def test_its_settings_load_and_its_output_lies_where_the_agent_reads(documents, pod):
    (settings,) = (one for one in documents if one["kind"] == "ConfigMap")
    read = yaml.safe_load(settings["data"]["settings.yaml"])
    loaded = daemon_settings.Settings.model_validate(read)
    assert loaded.prints_output_file == "/host/devices/ic-device"
    assert {"name": "devices", "mountPath": "/host/devices"} in pod["containers"][0]["volumeMounts"]
    paths = [one["hostPath"]["path"] for one in pod["volumes"] if "hostPath" in one]
    assert paths == ["/var/run/koord-agent/xpu-device-infos"]
    (container,) = pod["containers"]
    assert container["args"][0] == "device-daemon"
    (port,) = container["ports"]
    assert port["containerPort"] == loaded.health.port


def test_it_has_no_privilege(pod):
    (container,) = pod["containers"]
    allowed = container["securityContext"]
    assert allowed["capabilities"] == {"drop": ["ALL"]}
    assert allowed["allowPrivilegeEscalation"] is False
    assert allowed["readOnlyRootFilesystem"] is True
    assert not {"hostPID", "hostNetwork", "hostIPC"} & set(pod)


def test_its_policy_names_what_the_code_writes(documents):
    policy = plain.named(documents, "ValidatingAdmissionPolicy", "koord-device-daemon")
    text = " ".join(one["expression"] for one in policy["spec"]["validations"])
    for key in (*output.LABELS, *output.ANNOTATIONS):
        assert f'"{key}"' in text
