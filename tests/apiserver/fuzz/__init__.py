"""Nonsense for the API server: nothing may be a 500, and no write may be lost.

`generate.py` makes bodies and patches from a seed, `player.py` sends them and checks what came of it; tests
are in fronts/test_fuzz.py. A longer run: `python -m tests.apiserver.fuzz --minutes 10 --seed 1`.
"""
