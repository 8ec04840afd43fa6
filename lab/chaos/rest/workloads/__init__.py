"""Rules of rest for owners of pods, and for the statuses that follow from pods."""
