"""Objects as the autoscaler reads them: pods, taints, readiness, budgets, quotas."""
