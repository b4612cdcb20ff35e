"""Loads and runs compiled programs; imports core only, never the compiler."""
