"""Jobs: parts of a command that run in processes of their own, on this machine or on a Dask cluster.

Start with `job.py` (what a job is, and what an executor reports). `child.py` is the program of a job's
process, `process.py` starts it and reads its results; `local.py` and `dask.py` are the executors.
"""
