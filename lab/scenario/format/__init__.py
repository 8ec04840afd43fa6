"""The format of scenario files: the model, reading and checking. Start with `model`."""
