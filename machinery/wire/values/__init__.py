"""Values as Go writes them: times, bytes, scalars."""
