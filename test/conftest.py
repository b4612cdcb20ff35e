"""Shared by every test: lit's files are collected as tests, run in this process where faithful."""
