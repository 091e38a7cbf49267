"""The methods' advantages for episodes that other training libraries play; one small file per library."""
