"""A broker's logs in files: what is written, on which file system, and what a restart reads
back."""
