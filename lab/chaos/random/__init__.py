"""Random faults under random load."""
