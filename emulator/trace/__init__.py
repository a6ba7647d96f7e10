"""The closed vocabulary of events. `state/` derives everything else from a trace."""
