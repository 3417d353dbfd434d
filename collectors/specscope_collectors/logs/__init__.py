"""What logs of every engine have in common: blocks of lines, stamps, what container runtimes add."""
