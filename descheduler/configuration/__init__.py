"""DeschedulerConfiguration as the reference writes it: read, checked, made profiles. Pure."""
