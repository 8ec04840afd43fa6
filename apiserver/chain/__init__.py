"""The request chain that both fronts call, and the metrics of requests."""
