"""What a PodMigrationJob does next, and which may begin: values in, values out. Pure."""
