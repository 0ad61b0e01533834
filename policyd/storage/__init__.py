"""The only room that touches files: policies, trust, grants, audit, settings, and the real file system."""
