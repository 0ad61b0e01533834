"""Commands inside commands: wrappers (`sudo`, `timeout`), `find -exec`, `bash -c`, names among a stranger's words."""
