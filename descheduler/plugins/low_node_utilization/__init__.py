"""LowNodeUtilization: moves pods from nodes of which much is requested to those with little."""
