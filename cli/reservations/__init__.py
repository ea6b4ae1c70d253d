"""The Reservations of a cluster: who may use them, who does, what is left, why one is Pending."""
