"""Each broker in a process or a container of its own."""
