"""Admission plugins that refuse what the user may not do."""
