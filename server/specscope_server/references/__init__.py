"""References: profiles of training dumps, uploaded as files, kept in versions, listed and shown."""
