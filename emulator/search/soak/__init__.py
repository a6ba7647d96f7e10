"""Real clients and faults with broker processes, judged only by the clients' history."""
