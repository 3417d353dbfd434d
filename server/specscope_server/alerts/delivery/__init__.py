"""Getting notifications to their channels: outbox, attempts, retries, and who may be connected to."""
