"""`nominee import`."""
