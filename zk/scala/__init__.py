"""The iteration order of Scala's and Java's collections."""
