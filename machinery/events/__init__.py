"""Event recorders: core/v1 events with a correlator, events.k8s.io events with series."""
