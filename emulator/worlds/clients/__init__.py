"""Clients of an emulated cluster: producers, consumers and administrators."""
