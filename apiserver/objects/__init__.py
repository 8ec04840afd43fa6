"""Values that every layer shares: cached objects, watchers, the options and results of requests.

Start reading at `requests.py`. `cached_object.py` is an object as bytes and as a message. Nothing here does
I/O.
"""
