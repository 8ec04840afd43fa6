"""The foundation of every process: wire, objects, quantities, selectors, gates, client, informers, serving.

Start with `api.kinds` (which objects there are) and `client` (how a component reaches the API server);
`process` shows how a component's main program is put together.
"""
