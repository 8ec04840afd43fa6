"""Binding (`binding.py`) and eviction (`eviction.py`, `budget.py`) of pods."""
