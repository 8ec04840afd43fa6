"""The event loop of a simulation, its clock, and interrupts."""
