"""Preemption: who has to go so that a more important pod can run, decided as data and then carried out."""
