"""Build, cache, load and call compiled programs. Imports core only, never the compiler."""
