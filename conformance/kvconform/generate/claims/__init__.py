"""What an adapter claims: traces are fitted to it, and claims are proposed."""
