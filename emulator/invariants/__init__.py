"""What must hold in every run, one file each: predicates that listen to the trace while it grows,
and over stored traces."""
