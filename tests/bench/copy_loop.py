"""The floor of the proxy benchmarks: one poller, blocking writes, no look at the bytes. `copy_loop.py AGENT [ARG…]`"""

from __future__ import annotations

import os
import select
import sys

their_in, our_out = os.pipe()
our_in, their_out = os.pipe()
actions = [(os.POSIX_SPAWN_DUP2, their_in, 0), (os.POSIX_SPAWN_DUP2, their_out, 1)]
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
os.close(their_in)
os.close(their_out)
poll = select.poll()
to = {0: our_out, our_in: 1}
for fd in to:
    poll.register(fd, select.POLLIN)
while to:
    for fd, _ in poll.poll():
        data = os.read(fd, 65536)
        if not data:
            poll.unregister(fd)
            os.close(to.pop(fd))
            continue
        while data:
            data = data[os.write(to[fd], data) :]
