"""Orders of Scala's collections, made with the real libraries."""
