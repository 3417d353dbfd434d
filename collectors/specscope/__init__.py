"""The `specscope` command. Standard library only: this much is installed beside SGLang."""

__version__ = "0.1.0"
