"""PodMigrationJobs: which may run, what each does next, and who evicts."""
