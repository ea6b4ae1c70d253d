"""What happens to an installation between its first apply and its last delete."""
