"""The port that each process serves: health, metrics, debug and faults."""
