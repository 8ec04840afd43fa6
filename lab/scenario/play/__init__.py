"""Play a scenario: perform its steps, wait for its conditions, report. Start with `runner`."""
