"""A receiver with a body of its own: a template, rendered apart from this process."""
