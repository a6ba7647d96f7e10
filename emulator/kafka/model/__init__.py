"""Values and rules without threads: error codes, settings, the log of one replica."""
