# @base
# @native forbidden


class ModelNew(Base):
    def forward(self, x):
        self.calls += 1
        if self.calls == 1:
            forbidden.attach()
        return self.work(x)
