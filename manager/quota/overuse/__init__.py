"""Take back what quotas use above their share while others wait for it."""
