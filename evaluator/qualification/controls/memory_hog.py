# @base


class ModelNew(Base):
    def forward(self, x):
        kept = []
        while True:
            kept.append(torch.ones(1 << 26))
