"""Studies: questions that a KEP leaves open, measured on real processes.

Start with `scenarios/` (the steps of a trial, and its measures in `trial.yml`) and `composition`, which puts
the pods of all seeds in; the options of the command are in `nominee/commands/measuring/study.py`. `plans` draws the
pods of a trial from a seed, `preemption` computes which evictions are needed, `results` has what is measured,
`statistics` summarizes it, `pages.report` is the document of `-o json`, `pages.page` the HTML page: none of these does
I/O. `runner` plays the scenarios, `throughput` drives a cluster itself.
"""
