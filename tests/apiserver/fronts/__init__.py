"""One set of assertions for both fronts: what gRPC answers, REST answers, and the other way round.

`adapter.py` makes both speak JSON and HTTP's codes, over `over_rest.py` and `over_grpc.py`; `conftest.py` has
the server behind them.
"""
