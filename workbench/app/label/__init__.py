"""The Label page, around the desk: classes, guesses, instructions, an oracle in the person's place."""
