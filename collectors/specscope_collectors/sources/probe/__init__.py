"""State profiles that the probe leaves in a folder: read, checked, stored, and only then deleted."""

SOURCE = "probe"
