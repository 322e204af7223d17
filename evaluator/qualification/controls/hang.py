# @base


class ModelNew(Base):
    def forward(self, x):
        while True:
            pass
