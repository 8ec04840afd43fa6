"""The scheduling loop: attempts, bindings, failures."""
