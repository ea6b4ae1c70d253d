"""MigrationController as a filter: which pods a PodMigrationJob may move."""
