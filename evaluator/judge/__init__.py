"""The judge: the clock, the order of measurement, the statistics and the verdict. Never loads torch.

`setting` is what a job runs on; `runner` and `trusted` are handles of the other processes;
`correctness` and `timing` are the two measurements that `evaluation`, `comparison`, `floor`,
`baseline`, `robustness` and `check` compose; `jobs` turns a job into a result.
"""
