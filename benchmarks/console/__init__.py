"""What the web console costs: the manager that serves it, and the browser that shows it."""
