"""The stories, in the order in which they run. Each is a function of the stage."""
