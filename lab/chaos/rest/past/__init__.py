"""Facts of a history that excuse a state of rest. No I/O."""
