import os

# @base


class ModelNew(Base):
    def forward(self, x):
        os.abort()
