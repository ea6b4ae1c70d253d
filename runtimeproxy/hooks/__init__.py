"""Hook servers: which are registered for which stage, and how they are asked."""
