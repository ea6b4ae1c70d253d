"""How plug-ins are asked, and what becomes of their suggestions: filters, limits, gain. Pure."""
