"""What protects a release beyond one draw: composition, budgets, the ledger, noise and audits."""
