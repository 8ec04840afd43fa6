"""Values that every layer shares: cached objects, watchers, the options and results of requests.

Read `requests` first; `cached_object` is an object as bytes and as a message. Nothing here does I/O.
"""
