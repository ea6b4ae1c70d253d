"""What administrators set: NodeSLO, the ConfigMap, and the strategies that both hold."""
