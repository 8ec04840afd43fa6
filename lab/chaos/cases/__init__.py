"""Cases: a disturbance, its run's observations and its verdict."""
