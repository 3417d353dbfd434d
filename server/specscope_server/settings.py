"""One typed `Settings`: environment (`SPECSCOPE_…`), TOML file and CLI flags use the same names."""
