"""What is known of a program: costs, effects, lifetimes. Passes enter by `costs` and `effects`."""
