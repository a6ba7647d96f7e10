"""The closed vocabulary of events; state/ is the one account of a trace."""
