"""The shell of the horizontal pod autoscaler: it reads scales and metrics, and writes scales and statuses."""
