"""Generated cases take as long as they take: a busy machine is no defect."""

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
