import pytest

from cli import descheduler_options, main
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
