"""Hours of load on a small cluster: lending, suppression, evictions, placement and their price."""

import json

import pytest
from PIL import Image

from api import names
from cli import main
from cli.output import written_reports
from cli.simulation.load import command, replay, results, series
from cli.snapshot import reader
from tests import builders
from tests.cli.placement import clusters
from tests.cli.simulation.test_settings import batch, report, settings, small, web

ON = {"enable": True, "cpuReclaimThresholdPercent": 60, "memoryReclaimThresholdPercent": 65}
THRESHOLDS = {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 65}}


def load(*rows):
    return series.Recorded([(at, "default/web", series.Use(cpu, 4 << 30)) for at, cpu in rows])


def played(snapshot, source, hours=1.0, step=600.0, **more):
    return replay.replayed(snapshot, source, replay.Options(hours, step, **more))


def suppressing(*pods, thresholds=THRESHOLDS):
    return clusters.snapshot(
        builders.a_node("n1"), web(), report("n1"), *pods,
        settings(ON, **{"resource-threshold-config": json.dumps(thresholds)}),
    )  # fmt: skip


def test_waiting_pods_get_what_online_pods_leave():
    found = played(small(batch("a", 4)), load((0, 1.0)))
    of = results.summary(found)
    assert (of.started, of.evicted, of.nodes) == (1, 0, 2)
    first, *others = found.moments
    # It starts in the first step and works from the second on: 90 % of four cores.
    assert first.used == 0
    assert {round(one.used, 6) for one in others} == {3.6}
    assert {round(one.online, 6) for one in found.moments} == {3.0}
    # 16 - 6.4 - 1 - 1 on the first node, 8 - 3.2 - 1 on the second.
    assert first.lent == pytest.approx(7.6 + 3.8)
    assert of.gained_core_hours == pytest.approx(3.0)
    assert of.after_percent > of.before_percent
    assert of.stretch >= of.alone >= 1.0


def test_batch_pods_are_held_back_when_online_load_rises():
    found = played(suppressing(batch("a", 6, "n1")), load((0, 1.0), (1800, 7.0)))
    low, high = found.moments[1], found.moments[-1]
    assert low.used == low.wanted == pytest.approx(5.4)
    # 65 % of 16 cores, less 7 of the service and 1 of the system.
    assert high.used == pytest.approx(2.4, abs=0.01)
    assert high.wanted == pytest.approx(5.4)
    assert high.lent < low.lent
    assert results.summary(found).suppressed_core_hours == pytest.approx(0.5 * 3.0, abs=0.01)


def test_without_suppression_batch_pods_get_what_the_node_has():
    off = {"clusterStrategy": {"enable": False}}
    found = played(suppressing(batch("a", 6, "n1"), thresholds=off), load((0, 12.0)))
    assert found.moments[-1].used == pytest.approx(3.0)


def test_memory_pressure_evicts_and_the_pod_waits_again():
    strategy = {"clusterStrategy": {"enable": True, "memoryEvictThresholdPercent": 70}}
    pod = batch("a", 2, "n1")
    pod["spec"]["containers"][0]["resources"]["requests"][names.BATCH_MEMORY] = "40Gi"
    source = series.Recorded([(0, "default/web", series.Use(1.0, 30 << 30))])
    more = {"gates": frozenset({"BEMemoryEvict"}), "places": False}
    found = played(suppressing(pod, thresholds=strategy), source, hours=0.5, **more)
    assert found.evictions == {"default": 1}
    assert [one.waiting for one in found.moments] == [1, 1, 1]


def test_predictions_lend_to_mid_pods():
    mid = {**ON, "midCPUThresholdPercent": 50, "midMemoryThresholdPercent": 50}
    old = web()
    old["metadata"]["creationTimestamp"] = "2026-06-01T00:00:00Z"
    snapshot = clusters.snapshot(builders.a_node("n1"), old, report("n1"), settings(mid))
    found = played(snapshot, load((0, 1.0)), hours=2.0)
    # Of 4 requested cores those stay that service and system need by prediction, a tenth more.
    assert found.moments[-1].mid == pytest.approx(4 - 1.1 * (1 + 1), abs=0.15)


def test_the_command_writes_lines_documents_and_a_report(tmp_path, capsys):
    snapshot, html, csv = tmp_path / "s", tmp_path / "r.html", tmp_path / "load.csv"
    reader.save(snapshot, small())
    words = ["simulate", "load", f"--snapshot={snapshot}", "--step=1h"]
    png = tmp_path / "r.png"
    files = (f"--html={html}", f"--png={png}")
    assert main.main([*words, "--day-curve", "--hours=3", "--fill=2,2Gi", *files]) == 0
    with Image.open(png) as picture:
        assert picture.size == (1720, 3 * 520)
    out = capsys.readouterr().out
    assert "Over 3 hours 2 nodes with 24 cores are used to" in out
    text = html.read_text()
    assert text.count("<svg") == 3
    assert "<script" not in text
    assert "http-equiv" not in text
    csv.write_text("seconds,pod,cpu,memory\n0,default/web,1,1Gi\n7200,default/web,2,1Gi\n")
    assert main.main([*words, f"--load={csv}", "-o", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["summary"]["hours"] == 2
    assert len(body["moments"]) == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--day-curve", "--step=0s"], "--step"),
        (["--day-curve", "--step=1s", "--hours=24"], "86400 steps"),
        (["--load=/nowhere"], "/nowhere cannot be read"),
        (["--day-curve", "--fill=2"], "--fill 2: write cores and memory"),
        (["--day-curve", "--fill=0,1Gi"], "above zero"),
        (["--day-curve", "--nodes=1"], "--like go together"),
        (["--day-curve", "--agent-feature=Fly"], "there is no such feature"),
    ],
)
def test_what_cannot_be_replayed_is_refused_by_name(words, why, tmp_path, capsys):
    reader.save(tmp_path / "s", small())
    assert main.main(["simulate", "load", f"--snapshot={tmp_path / 's'}", *words]) == 2
    assert why in capsys.readouterr().err


def test_a_report_of_hostile_names_holds_no_markup():
    evil = written_reports.Report(
        "<script>", ("a|b",), (written_reports.Table("t", ("X",), (("=1+1<b>",),)),), (), ("`n`",)
    )
    assert "<script>" not in written_reports.written(evil, "html")
    assert "'=1+1<b>" in written_reports.written(evil, "csv")
    markdown = written_reports.written(evil, "markdown")
    assert "a\\|b" in markdown
    assert "\\`n\\`" in markdown


def test_as_much_batch_work_waits_as_nodes_could_hold():
    found = command.filled(small(), "2,4Gi")
    assert (
        sum(one["metadata"]["namespace"] == "simulated-batch" for one in found.objects["pods"])
        == 12
    )
