"""What to do, decided without I/O or clock. Start with `snapshot`, then `scale_up` and `scale_down`."""
