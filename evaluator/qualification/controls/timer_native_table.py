# @base
# @native forbidden


class ModelNew(Base):
    def __init__(self, *args):
        super().__init__(*args)
        forbidden.hook(1)

    def forward(self, x):
        forbidden.enter()
        y = self.work(x)
        forbidden.leave()
        return y
