"""What Reservations cost the extender."""
