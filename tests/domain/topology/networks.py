"""Networks for tests: layers of spines and blocks, and nodes given by where they are."""

from api.koordinator import topology
from domain.topology import layers, tree

SPINE, BLOCK = "SpineLayer", "BlockLayer"
SPINE_KEY, BLOCK_KEY = "network.topology.nvidia.com/spine", "network.topology.nvidia.com/block"


def layer(name, parent="", *keys):
    return topology.Layer(topology_layer=name, parent_topology_layer=parent, label_key=keys)


LISTED = (
    layer(SPINE, "", SPINE_KEY),
    layer(BLOCK, SPINE, BLOCK_KEY),
    layer(layers.LEAF, BLOCK),
)
LAYERS = layers.read(topology.NetworkSpec(network_topology_spec=LISTED))


def labels(spine="", block=""):
    return {key: name for key, name in ((SPINE_KEY, spine), (BLOCK_KEY, block)) if name}


def network(**blocks):
    """Return a tree of nodes by block, such as s1b1="n1 n2"; its spine is the first two letters."""
    nodes = [
        (node, labels(block[:2], block))
        for block, named in blocks.items()
        for node in named.split()
    ]
    return tree.Tree.of(LAYERS, nodes)
