"""Tests of `nominee.testing`, the package for tests of other projects."""
