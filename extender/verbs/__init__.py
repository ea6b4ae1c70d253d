"""The verbs of the scheduler extender: filter, prioritize, preempt, bind."""
