"""Imported by the fork server before it forks workers: loads the model once for all of them.

An import must not raise there (the front would see a bare EOFError, and an ImportError would be
swallowed), so the error is kept and the worker reports it. Not imported anywhere else: importing
it is what loads the model.
"""

import ctypes
import gc
import os
import signal

from intone_server.workers.loading import FRONT_PID_VARIABLE, PRELOAD_VARIABLE, Loading, WorkerSpec

# Ctrl-C, systemd and Kubernetes signal the whole process group. Workers must outlive that, or a
# drain would be impossible; they end when their pipe does. Children inherit both settings.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # until a worker has something to say to it

# The fork server notices that the front is gone only between forks, and loading may take minutes:
# let the kernel end it. From prctl(2); workers do not inherit it.
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() != int(os.environ[FRONT_PID_VARIABLE]):
    os._exit(0)  # it was gone before that

loading = Loading(WorkerSpec.from_json(os.environ[PRELOAD_VARIABLE]))
loading.run()
# What is loaded now lives as long as the process: keep the collector from touching, and so
# unsharing, its pages in every child.
gc.collect()
gc.freeze()
