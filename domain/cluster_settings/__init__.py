"""The cluster settings of administrators: parsed, validated, merged for a node."""
