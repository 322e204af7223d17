# @base


class ModelNew(Base):
    def __init__(self, *args):
        super().__init__(*args)
        self.buffers_by_shape = {}

    def forward(self, x):
        shape = self.shape(x)
        if shape not in self.buffers_by_shape:
            self.buffers_by_shape[shape] = torch.empty(shape)
        out = self.buffers_by_shape[shape]
        kernels.fused_out(*self.arguments(x), out)
        return out
