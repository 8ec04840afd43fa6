"""The matrix: axes, their combinations and the file that declares them."""
