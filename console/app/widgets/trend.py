"""The trend plot, behind one thin widget so that the plotting library can be replaced.

Invariant: only finite points of `console.views.trend` reach the library, at most a thousand.
Not for: choosing what to plot.
"""

from __future__ import annotations

from textual_plotext import PlotextPlot

from console.views.trend import Trend


class TrendPlot(PlotextPlot):  # type: ignore[misc]  # the library is not typed
    """The champion's speed-up over the run's minutes."""

    def show(self, trend: Trend) -> None:
        """Replace the curve."""
        self.plt.clear_data()
        self.plt.title("speed-up over the baseline")
        self.plt.xlabel("minutes")
        self.plt.plot(list(trend.minutes), list(trend.speedups), marker="braille")
        self.refresh()
