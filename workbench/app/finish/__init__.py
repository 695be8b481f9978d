"""The Finish page: what is promised, and how its checks go."""
