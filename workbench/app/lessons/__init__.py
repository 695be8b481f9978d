"""The Lessons page: texts that carry figures, what they compute, a class that labels together."""
