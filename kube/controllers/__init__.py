"""Controllers: work queues, reconcile loops, leader election and events."""
