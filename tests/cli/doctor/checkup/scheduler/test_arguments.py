"""What koord-scheduler-config tells the plug-ins."""

import pytest

from api import names
from cli.doctor.checkup import facts

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


ARGUMENTS = "{profiles: [{pluginConfig: [{name: NodeNUMAResource, args: {}}]%s}]}"
ENABLED = ", plugins: {multiPoint: {enabled: [{name: NodeNUMAResource}]}}"
EXTENDER = {"data": {"settings.yaml": "plugins: {enabled: [BatchFit, NodeNUMAResource]}"}}


@pytest.mark.parametrize(
    ("plugins", "extender", "told"),
    [
        pytest.param("", {}, {"arguments.not-enabled"}, id="nowhere"),
        pytest.param(ENABLED, {}, set(), id="in the ConfigMap"),
        pytest.param("", {"koord-extender": EXTENDER}, set(), id="in the extender's settings"),
        pytest.param(
            "", {"koord-extender": {"data": {"settings.yaml": "plugins: {enabled: 5}"}}},
            {"arguments.not-enabled"}, id="in settings that cannot be read",
        ),
    ],
)  # fmt: skip
def test_arguments_of_a_plugin_that_is_not_enabled_are_said(
    found, healthy, plugins, extender, told
):
    written = {"data": {names.CONFIG_MAP_SCHEDULER: ARGUMENTS % plugins}}
    known = {**healthy.config_maps, names.CONFIG_MAP_SCHEDULER: written, **extender}
    assert set(found(config_maps=known)) == told


def labelled(name, quality, phase="Running"):
    pod = {
        "metadata": {"name": name, "namespace": "shop", "labels": {names.LABEL_QOS: quality}},
        "status": {"phase": phase},
    }
    return facts.pods_of([pod])


def test_pods_that_expect_cpus_of_their_own_are_said_where_none_are_given(found, healthy):
    pods = (
        *healthy.pods, *labelled("web-1", "LSR"), *labelled("web-0", "LSE"), *labelled("a", "LS")
    )  # fmt: skip
    told = found(pods=pods)
    assert set(told) == {"arguments.cpus-not-given"}
    assert told["arguments.cpus-not-given"].sentence.startswith("shop/web-0 and 1 more, of class")
    ended = (*healthy.pods, *labelled("web-0", "LSE", "Succeeded"))
    assert not found(pods=ended)
    enabled = {"data": {names.CONFIG_MAP_SCHEDULER: ARGUMENTS % ENABLED}}
    known = {**healthy.config_maps, names.CONFIG_MAP_SCHEDULER: enabled}
    assert not found(pods=pods, config_maps=known)


def test_of_a_document_that_is_refused_nothing_else_is_said(found, healthy):
    wrong = ARGUMENTS % (ENABLED + ", unheardOf: 1")
    written = {"data": {names.CONFIG_MAP_SCHEDULER: wrong.replace("args: {}", "args: {zzz: 1}")}}
    known = {**healthy.config_maps, names.CONFIG_MAP_SCHEDULER: written}
    pods = (*healthy.pods, *labelled("web-0", "LSR"))
    told = found(pods=pods, config_maps=known)
    assert set(told) - {"arguments.without-effect"} == {"arguments.refused"}


def test_settings_that_the_configmap_overrules_are_said(found, healthy):
    told = found(config_maps=maps(healthy, "{}", **{"koord-extender": SETTINGS}))
    assert "arguments.shadowed" in told
    alone = {**healthy.config_maps, "koord-extender": SETTINGS}
    assert "arguments.shadowed" not in found(config_maps=alone)
