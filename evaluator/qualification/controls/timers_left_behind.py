# @base
# @native escapes


class ModelNew(Base):
    def forward(self, x):
        return escapes.storm(*self.arguments(x))
