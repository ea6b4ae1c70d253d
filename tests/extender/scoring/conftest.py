import pytest

from tests.extender.scoring import deciding


@pytest.fixture
def three():
    """Three nodes; what asks for little fits best on the largest, n3."""
    made = deciding.Deciding()
    for name, cpu in (("n1", "2"), ("n2", "4"), ("n3", "8")):
        made.node(deciding.node(name, cpu=cpu, memory=f"{cpu}Gi"))
    return made
