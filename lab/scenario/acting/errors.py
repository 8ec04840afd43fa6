"""The error of a step that was performed, but not with the stated result."""


class StepFailedError(Exception):
    """A step did not lead to what it states; the message has the observation."""
