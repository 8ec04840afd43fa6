"""HTTP extenders: other processes that filter, score, bind and take part in preemption.

`wire` has the requests and responses (extender/v1), `search` the calls of a scheduling cycle, as a
generator that yields calls and receives their results; `client` makes the calls. Start at `search`.
"""
