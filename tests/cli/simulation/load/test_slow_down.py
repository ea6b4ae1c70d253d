"""The stretch of requests against known values of the M/M/c queue."""

import pytest

from cli.simulation.load import slow_down


@pytest.mark.parametrize(
    ("cores", "used", "expected"),
    [
        pytest.param(1, 0.5, 2.0, id="one server: 1 / (1 - load)"),
        pytest.param(2, 1.0, 4 / 3, id="two servers: 1 / (1 - load^2)"),
        pytest.param(16, 0.0, 1.0, id="idle"),
        pytest.param(0, 1.0, 1.0, id="no cores"),
    ],
)
def test_known_values(cores, used, expected):
    assert slow_down.stretch(cores, used) == pytest.approx(expected)


def test_it_grows_with_load_and_falls_with_cores_at_the_same_load():
    loads = [slow_down.stretch(16, 16 * share / 20) for share in range(1, 25)]
    assert loads == sorted(loads)
    sizes = [slow_down.stretch(cores, cores * 0.8) for cores in (1, 2, 4, 16, 64, 256)]
    assert sizes == sorted(sizes, reverse=True)
    assert slow_down.stretch(64, 1e9) == slow_down.stretch(64, 64 * 0.99)
