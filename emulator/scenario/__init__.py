"""Scenarios: their files, actions (faults, commands, clients) and expectations."""
