"""Run one attempt of each kind: at a pod, at the pods of a group, at the deferred resize of a bound pod.

`pod.py`, `group.py` and `resize.py` have the scheduling cycle of their kind and answer what follows from it;
`states.py` is the table of an attempt's states from the cycle to the binding. Start with `pod.py`.
"""
