"""A directory through which jobs reach judges on other hosts: every step is one atomic rename, and no lock is needed.

`queue/` holds jobs that nobody has, `claimed/` those that a worker has, `results/` what came of them,
`progress/` how far each is, `refused/` files that are no jobs beside the reason, `workers/` one beating
file for each worker. A name is the sha256 of the job's id: the same job put twice is one job.
"""
