"""What a program, kernel or op is found to be: read by rewrites and steps down, changes nothing."""
