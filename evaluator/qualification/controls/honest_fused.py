# @base


class ModelNew(Base):
    def forward(self, x):
        return kernels.fused(*self.arguments(x))
