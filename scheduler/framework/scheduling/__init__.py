"""The scheduling algorithm for one pod, its diagnosis and its simulation."""
