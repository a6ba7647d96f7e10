"""The controller: one event at a time, state machines for partitions and replicas, one send thread
per broker."""
