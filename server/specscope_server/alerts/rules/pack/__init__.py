"""The shipped rules, one file each."""
