"""Profiler captures: taken in, listed, shown by phase and class of kernel, compared, and started."""
