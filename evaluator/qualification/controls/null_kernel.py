# @base


class ModelNew(Base):
    def forward(self, x):
        return kernels.plain(*self.arguments(x))
