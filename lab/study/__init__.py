"""Studies: questions that a KEP leaves open, measured in simulations and on real processes.

Start with `scenarios/` (the steps of a trial, and its measures) and `settings` (the setups of each); the
options of the command are in `nominee/commands/measuring/study.py`. `plans` draws the pods of a trial from a
seed and computes which evictions are needed, `composition` puts them into the scenario, `results` has the
rows, `statistics` the intervals, `pages.answers` the text, `pages.page` the HTML page: none of these does
I/O. `runner` simulates the trials, `throughput` drives a cluster of real processes.
"""
