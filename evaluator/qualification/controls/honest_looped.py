# @base


class ModelNew(Base):
    def forward(self, x):
        return kernels.looped(*self.arguments(x))
