"""Pictures: folders of photos, their decoding, those that lie at web addresses."""
