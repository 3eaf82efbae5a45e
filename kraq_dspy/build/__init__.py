"""Makes, changes and prepares indexes."""
