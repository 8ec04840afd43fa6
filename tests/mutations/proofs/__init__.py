"""Tests of behaviour that only a mutation breaks: each is the proof of one in `tests.mutations.unseen`."""
