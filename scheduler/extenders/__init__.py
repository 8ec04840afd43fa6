"""HTTP extenders: processes outside that filter, score, bind, and have a say in preemption.

`wire` has the requests and answers (extender/v1), `search` what a scheduling cycle asks and when, as a
generator that yields calls and is sent their answers; `client` makes the calls. Start at `search`.
"""
