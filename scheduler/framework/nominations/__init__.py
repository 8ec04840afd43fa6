"""Nominated pods: who is nominated where, and which nodes they contend for."""
