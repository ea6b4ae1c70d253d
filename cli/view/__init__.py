"""The state of the cluster on a terminal: tables and sentences."""
