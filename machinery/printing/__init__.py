"""The columns that kubectl prints, for the API server's Tables and for `nominee get`.

`durations` has ages, `pods` the READY, STATUS and RESTARTS columns. Pure: the time is an argument.
"""
