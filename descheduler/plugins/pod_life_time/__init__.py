"""PodLifeTime: removes pods by age, state, conditions and exit codes."""
