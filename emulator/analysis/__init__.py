"""Many runs at once: Parquet data sets, Spark tables and a report; sweeps."""
