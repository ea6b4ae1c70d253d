"""Hours of load replayed on a snapshot in virtual time, by the code of manager, agent, extender."""
