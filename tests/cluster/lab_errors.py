"""What goes wrong in a lab. Everything that the lab raises on purpose is a LabError."""


class LabError(Exception):
    pass


class LabTimeout(LabError):
    pass
