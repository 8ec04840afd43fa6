"""The node's own endpoints: health, pods, metrics."""
