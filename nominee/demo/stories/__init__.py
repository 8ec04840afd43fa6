"""The stories, in the order in which they are played. Each is a function of the stage."""
