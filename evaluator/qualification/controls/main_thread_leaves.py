# @base
# @native escapes


class ModelNew(Base):
    def forward(self, x):
        return escapes.leave(*self.arguments(x))
