"""What plugins are given and answer: handle, cycle state, events and hooks."""
