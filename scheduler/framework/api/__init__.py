"""Types that plugins and the framework share: the handle, events, statuses, steps of I/O."""
