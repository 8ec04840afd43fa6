"""Commands that disturb a cluster."""
