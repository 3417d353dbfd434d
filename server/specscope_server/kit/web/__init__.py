"""What every endpoint shares: parameters, formats, problems, caching, security. No domain is known here."""
