"""The planner's passes, each from a program to a program; none imports another."""
