"""Tests of `nominee study`: plans, composed scenarios, statistics, the page, and the command."""
