"""A broker's logs in files: what is written, on which file system, and what is found again."""
