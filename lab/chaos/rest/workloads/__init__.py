"""Rules of rest for owners of pods, for what pods reserve, and for the statuses that follow from pods."""
