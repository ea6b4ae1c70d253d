"""What koord-scheduler-config tells the plug-ins."""

import pytest

from api import names

LOAD = "{profiles: [{pluginConfig: [{name: LoadAwareScheduling, args: %s}]}]}"
SETTINGS = {
    "metadata": {"name": "koord-extender"},
    "data": {"settings.yaml": "plugins: {loadAware: {usageThresholds: {cpu: 50}}}"},
}


def maps(healthy, args, **more):
    written = {"data": {names.CONFIG_MAP_SCHEDULER: LOAD % args}}
    return {**healthy.config_maps, names.CONFIG_MAP_SCHEDULER: written, **more}


@pytest.mark.parametrize(
    ("args", "name", "said"),
    [
        pytest.param("{usageThresholds: {cpu: 60}}", None, "", id="fine"),
        pytest.param(
            "{usageThresholds: {cpu: 160}}",
            "arguments.refused",
            "args.usageThresholds.cpu: is 160, must be at most 100; correct it or leave it out",
            id="refused",
        ),
        pytest.param(
            "{estimator: mine}",
            "arguments.without-effect",
            "args.estimator: is unknown",
            id="doubt",
        ),
    ],
)
def test_the_document_is_read_as_the_extender_reads_it(found, healthy, args, name, said):
    told = found(config_maps=maps(healthy, args))
    assert set(told) == ({name} if name else set())
    if name:
        assert said in told[name].sentence
        assert told[name].sentence.startswith(
            "ConfigMap koordinator-system/koord-scheduler-config."
        )


def test_settings_that_the_configmap_overrules_are_said(found, healthy):
    told = found(config_maps=maps(healthy, "{}", **{"koord-extender": SETTINGS}))
    assert "arguments.shadowed" in told
    alone = {**healthy.config_maps, "koord-extender": SETTINGS}
    assert "arguments.shadowed" not in found(config_maps=alone)
