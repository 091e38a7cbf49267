"""Playing the same scripts on our environments and on recordings of upstream."""
