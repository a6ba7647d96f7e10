"""Many runs at once: traces as a Parquet data set, tables made of it with Spark, and a report."""
