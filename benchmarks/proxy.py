"""Several servers of one installation behind a proxy, as on several machines: own data folders, a shared database.

`python -m benchmarks.proxy PORT SERVER...` is the proxy. It sends each request to the next of the servers' ports, so
that a person's requests go to all servers in turn.
"""

import asyncio
import re
import secrets
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import cycle

from benchmarks.place import BenchmarkFailed, Place, free_port, serving, wait_for_server

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@contextmanager
def several_servers(place: Place, number: int) -> Iterator[tuple[str, list[Place], int]]:
    """Run servers of one process each. Yield the proxy's address, the servers' places and the proxy's process."""
    if place.database != "PostgreSQL":
        raise BenchmarkFailed("Several servers need PostgreSQL: python -m tests.postgres python -m benchmarks …")
    keys = {name: secrets.token_hex(32) for name in ("ASSAY_SECRET_KEY", "ASSAY_AUTHOR_KEY")}
    with ExitStack() as stack:
        places, ports = [], []
        for count in range(number):
            home = place.folder / f"server{count}"
            home.mkdir()
            places.append(replace(place, folder=home, env=place.env | keys | {"ASSAY_DATA_DIR": str(home / "data")}))
            address = stack.enter_context(serving(places[-1], workers=1, threads=4))
            ports.append(address.rpartition(":")[2])
        port = free_port()
        proxy = subprocess.Popen([sys.executable, "-m", "benchmarks.proxy", str(port), *ports], cwd=place.root)
        stack.callback(proxy.wait)
        stack.callback(proxy.terminate)
        wait_for_server(proxy, port)
        yield f"http://127.0.0.1:{port}", places, proxy.pid


async def _message(reader: StreamReader) -> bytes:
    """Read a request or a response, whose body has a stated length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    return head + await reader.readexactly(int(length[1])) if length else head


async def _forward(ports: list[int], client: StreamReader, to_client: StreamWriter, first: int) -> None:
    servers: dict[int, tuple[StreamReader, StreamWriter]] = {}
    turns = cycle(ports[first:] + ports[:first])
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            request, port = await _message(client), next(turns)
            if port not in servers or servers[port][0].at_eof():
                servers[port] = await asyncio.open_connection("127.0.0.1", port)
            server, to_server = servers[port]
            to_server.write(request)
            to_client.write(await _message(server))
            await to_client.drain()
    for writer in (to_client, *(writer for _, writer in servers.values())):
        writer.close()


async def main(port: int, servers: list[int]) -> None:
    firsts = cycle(range(len(servers)))

    async def begin(client: StreamReader, to_client: StreamWriter) -> None:
        await _forward(servers, client, to_client, next(firsts))

    async with await asyncio.start_server(begin, "127.0.0.1", port, limit=2**20) as proxy:
        await proxy.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
