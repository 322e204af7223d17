# @base
# @native escapes


class ModelNew(Base):
    def forward(self, x):
        escapes.spin_all()
        return self.work(x)
