import pytest

from cli import descheduler_options, main
from descheduler.rounds import configured
from process.runtime import entry

THEIRS = "theirs.yaml"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--config", THEIRS], ["--configuration=theirs.yaml"]),
        ([f"--config={THEIRS}"], ["--configuration=theirs.yaml"]),
        (["--config", "ours.yaml", "--mode=off"], ["--config=ours.yaml", "--mode=off"]),
        (["--leader-elect"], ["--leaderElection.enabled=true"]),
        (["--leader-elect=false"], ["--leaderElection.enabled=false"]),
        (["--leader-elect-lease-duration=1m30s"], ["--leaderElection.leaseSeconds=90"]),
        (["--leader-elect-retry-period", "2s"], ["--leaderElection.retrySeconds=2"]),
        (["--leader-elect-renew-deadline=soon"], ["--leaderElection.renewSeconds=soon"]),
        (["--leader-elect-resource-lock=leases"], []),
        (["--feature-gates=A=true,B=false"], ["--featureGates.A=true", "--featureGates.B=false"]),
        (["--dryRun=true"], ["--dryRun=true"]),
    ],
    ids=[
        "their file", "their file at once", "our file", "bare", "off", "time", "time apart",
        "no time", "lock", "gates", "ours",
    ],
)  # fmt: skip
def test_flags_of_the_reference_are_read_as_settings(given, expected):
    found, notes = descheduler_options.arguments(given, lambda file: file == THEIRS)
    assert found == expected
    is_ours = given[0] == "--dryRun=true" or "ours.yaml" in given
    assert len(notes) == (0 if is_ours else 1)


@pytest.mark.parametrize("apart", [True, False], ids=["apart", "at once"])
def test_the_effective_configuration_is_written_and_reads_to_the_same(apart, tmp_path, capsys):
    file, target = tmp_path / "file.yaml", tmp_path / "effective.yaml"
    file.write_text("kind: DeschedulerConfiguration\ndeschedulingInterval: 90s\n")
    asked = ["--write-config-to", str(target)] if apart else [f"--write-config-to={target}"]
    assert main.main(["descheduler", "--config", str(file), *asked]) == entry.OK
    written = configured.read(target.read_text())
    assert written.head.descheduling_interval == 90
    assert written.effective == configured.read(file.read_text()).effective


def test_a_configuration_that_cannot_be_read_is_not_written(tmp_path, capsys):
    file, target = tmp_path / "file.yaml", tmp_path / "effective.yaml"
    file.write_text("kind: DeschedulerConfiguration\ndeschedulingInterval: soon\n")
    words = ["descheduler", "--config", str(file), "--write-config-to", str(target)]
    assert main.main(words) == entry.BAD_SETTINGS
    assert "deschedulingInterval" in capsys.readouterr().err
    assert not target.exists()
    file.write_text("kind: DeschedulerConfiguration\n")
    words[-1] = str(tmp_path / "nowhere" / "effective.yaml")
    assert main.main(words) == entry.FAILED


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("kind: DeschedulerConfiguration\n", "--configuration="),
        ('{"a": 1,\n "kind": "DeschedulerConfiguration"}', "--configuration="),
        ("mode: observe\n", "--config="),
    ],
    ids=["theirs", "theirs in JSON", "ours"],
)  # fmt: skip
def test_the_file_itself_says_whose_it_is(text, asked, tmp_path, capsys):
    file = tmp_path / "file.yaml"
    file.write_text(text)
    assert main.main(["descheduler", "--config", str(file), "--print-settings"]) == entry.OK
    shown = capsys.readouterr()
    if asked == "--config=":
        assert "mode: observe" in shown.out
    else:
        assert f"configuration: {file}" in shown.out
        assert f"--config is read as --configuration={file}" in shown.err
