"""Rules of rest for owners of pods, for reservations, and for the statuses that follow from pods."""
