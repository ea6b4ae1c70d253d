"""Say on the Node what it can carry out and what it lacks, so that nothing is promised in vain."""

import logging
from collections.abc import Callable
from typing import Final

from agent.model import capability_matrix
from api import names, resources
from api.kubernetes import core
from kube.client import client, errors
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)
SECONDS: Final = 60.0
SOON_SECONDS: Final = 10.0
MANAGER: Final = "koord-agent"
"""Who uninstalls knows by this name whose annotation it is."""


class Published:
    """Keeps one annotation of one Node true."""

    def __init__(
        self,
        kube: client.Client,
        clock: clocks.Clock,
        name: str,
        node: Callable[[], core.Node | None],
        look: Callable[[], capability_matrix.Facts | None],
    ) -> None:
        self.rows: tuple[capability_matrix.Row, ...] = ()
        self.problem: str | None = None
        """Why the Node does not say it, None when it does."""
        self.devices: Callable[[], tuple[capability_matrix.Row, ...]] = tuple
        """Says what is lacking of devices."""
        self._kube = kube
        self._clock = clock
        self._name = name
        self._node = node
        self._look = look
        self._groupless = False

    async def run(self) -> None:
        """Look once a minute for ever, and sooner while something is missing; write what is new."""
        while True:
            await self.step()
            await self._clock.sleep(self.pause)

    @property
    def pause(self) -> float:
        """How long until the next look: short while the host or the Node is not complete."""
        return SOON_SECONDS if self.problem is not None or self._groupless else SECONDS

    async def step(self) -> None:
        """Look once; a Node that says the same already is not written."""
        facts = self._look()
        if facts is None:
            # Saying that nothing can be carried out would end what this Node lends.
            self.problem = "this host was not examined yet"
            return
        self._groupless = not facts.version
        self.rows = capability_matrix.matrix(facts)
        node = self._node()
        if node is None:
            self.problem = "the Node has not been seen yet"
            return
        text = capability_matrix.published((*self.rows, *self.devices()))
        if node.metadata.annotations.get(names.ANNOTATION_STRATEGIES) == text:
            self.problem = None
            return
        body = {"metadata": {"annotations": {names.ANNOTATION_STRATEGIES: text}}}
        try:
            await self._kube.patch(resources.NODES, self._name, body, field_manager=MANAGER)
        except errors.KubeError as error:
            self.problem = f"annotation {names.ANNOTATION_STRATEGIES} cannot be written: {error}"
            _logger.info("strategies not published error=%s", error)
        else:
            self.problem = None
