"""Every regular expression that may read a user's text is tried on its worst inputs."""
