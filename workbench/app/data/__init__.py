"""The Data page: files brought in, pools on their cards, projects started and kept."""
