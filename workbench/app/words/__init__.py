"""The words of all pages: texts as people wrote them, terms that are explained, Help."""
