"""Any receiver that reads JSON, signed as Standard Webhooks."""
