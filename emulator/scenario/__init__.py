"""What is asked: files, actions (faults, commands, clients), expectations."""
