"""Generators of documents, benchmarks and mutants: nothing that users run."""
