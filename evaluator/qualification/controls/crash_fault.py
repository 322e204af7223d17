# @base
# @native tricks


class ModelNew(Base):
    def forward(self, x):
        tricks.fault()
        return self.work(x)
