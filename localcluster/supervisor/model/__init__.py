"""The supervisor's states and specification, without I/O."""
