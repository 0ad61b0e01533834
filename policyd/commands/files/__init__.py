"""The files and URLs a simple command names, and what it does to them; the door of this room is `operands`."""
