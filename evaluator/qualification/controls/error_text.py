# @base


class ModelNew(Base):
    def __init__(self, *args):
        raise ValueError("\ud800 \x1b[2J\x1b]0;title\x07 \u202e" + "x" * 100_000)
