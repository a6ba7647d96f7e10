"""What a scenario expects, one kind per file: a sentence, and how a run is held against it."""
