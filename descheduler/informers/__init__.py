"""What the descheduler watches, and how it becomes a picture."""
