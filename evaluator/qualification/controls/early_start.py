# @base
# @native tricks


class ModelNew(Base):
    def forward(self, x):
        return tricks.early(*self.arguments(x))
