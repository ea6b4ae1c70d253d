"""Quota admission: charge a new pod, or let it wait for quota."""
