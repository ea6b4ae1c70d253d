"""What people see of gangs: conditions of members, events and metrics."""
