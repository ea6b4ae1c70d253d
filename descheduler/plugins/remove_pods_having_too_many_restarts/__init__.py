"""RemovePodsHavingTooManyRestarts: removes pods whose containers restart again and again."""
