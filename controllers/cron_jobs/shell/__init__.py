"""I/O of the CronJob controller."""
