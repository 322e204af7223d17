# @base
# @native tricks


class ModelNew(Base):
    def forward(self, x):
        return tricks.remembered(*self.arguments(x))
