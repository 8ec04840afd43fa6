"""CronJobs: Jobs that are created by a schedule.

Start with `sync`, one reconciliation, and `shell.cron_jobs`, which performs it; `schedules` finds the time of
the Job that is due.

Source: kube-controller-manager 1.36, pkg/controller/cronjob.
"""
