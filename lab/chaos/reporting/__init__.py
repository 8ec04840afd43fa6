"""The reports and pages of `nominee chaos`."""
