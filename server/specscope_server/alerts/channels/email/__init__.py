"""E-mail, by SMTP."""
