"""Frame of every page: menu, sidebar, palette, and the small parts that several pages show."""
