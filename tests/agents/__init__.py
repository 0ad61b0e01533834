"""Real agents under `policyd proxy`, against a scripted model on loopback."""
