"""Studies: questions that a KEP leaves open, measured on real processes.

Start with `orchestration` (one process for each option of the scheduler); the options of the command are in
`nominee/commands/study.py`. `plans` draws the pods of a trial from a seed, `preemption` computes which
evictions are needed, `observation` folds what a watch saw into a result, `statistics` summarizes results,
`report` is the document of `-o json`, `page` the HTML page: none of these does I/O. `runner` and the
scenarios (`trials`, `throughput`) drive a cluster.
"""
