"""What is wrong with a dump, in words."""

from __future__ import annotations

NO_MEMORY = "it needs more memory than there is: no sample of hidden states does, or the machine is too small"


class DumpError(ValueError):
    """A file or folder cannot be read as a training dump; the text names it, the reason and the remedy."""


class AmbiguousWidthError(DumpError):
    """The hidden size does not follow from the shapes: it has to be told, not guessed."""
