"""Real clients and faults against brokers as processes, judged by the clients' history alone."""
