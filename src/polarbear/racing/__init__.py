"""The race: who runs next, on what and until when, and who is out; and races over recorded runs."""
