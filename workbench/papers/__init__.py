"""The papers' tables and figures as experiments: what is claimed, what we measure, what decides."""
