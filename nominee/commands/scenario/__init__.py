"""`nominee scenario`: run, check and record scenarios."""
