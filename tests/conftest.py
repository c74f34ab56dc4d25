"""What holds for every test: properties are judged by what they find, never by how long an example takes."""

from hypothesis import settings

settings.register_profile("footnote", deadline=None)
settings.load_profile("footnote")
