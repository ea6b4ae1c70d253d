"""ScheduleExplanations end: expired ones and those of pods that are gone are removed."""
