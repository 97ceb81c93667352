"""Start followers of an index, one after another, and kill each at a random time.

    python kill_follower.py URL INDEX KILLS SEED

After every 25 kills the index is compacted, as a user would. The seq after the last kill is printed. The followers are
forks of this process, which has imported everything, and has no threads.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from importlib import import_module

from hopfuse import Index
from hopfuse.stores.postgres import PostgresFollower

#: Kills between compactions: without them, opening an ever longer log takes longer than a follower lives.
COMPACT = 25
#: Seconds within which a follower is killed after it began to follow, at first: later what the machine needs.
MOST = 0.5


def main(url: str, index: str, kills: int, seed: int) -> None:
    rng, most = random.Random(seed), MOST
    for kill in range(kills):
        before = Index.open(index).seq
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with PostgresFollower(index, url) as following:
                    os.write(told, b"!")
                    following.run(poll=0.002)
            except BaseException as error:  # a row, the server: the parent says it
                print("a follower ended:", repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os.close(told)
        if kill % 5:  # else while it opens the index and connects
            os.read(ready, 1)
        time.sleep(rng.uniform(0.0, most))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(ready)
        if not os.WIFSIGNALED(status):
            raise SystemExit("a follower ended before it was killed")
        if kill % COMPACT == COMPACT - 1:
            subprocess.run([sys.executable, "-m", "hopfuse", "compact", index], check=True, stderr=subprocess.DEVNULL)
        most *= 0.8 if Index.open(index).seq > before else 1.25
    print(Index.open(index).seq)


if __name__ == "__main__":
    for name in ("psycopg", "adbc_driver_postgresql.dbapi", "pyarrow", "pyarrow.compute"):
        import_module(name)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
