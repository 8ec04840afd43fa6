"""Scale-down: eligibility, removal simulation, unneeded nodes."""
