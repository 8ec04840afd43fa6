"""I/O of disruption: the disruption controller and the controller of stale DisruptionTarget conditions."""
