"""Texts that are not for bash: what zsh, a lesser `sh`, PowerShell and cmd read the same way, and what they do not."""
