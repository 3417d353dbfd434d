"""One file per kind of condition. Nothing else names them."""
