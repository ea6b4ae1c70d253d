"""What gangs cost, and how soon whole gangs are bound or refused, on a real control plane."""
