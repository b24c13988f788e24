"""A network that stops carrying anything, without a word: what a lost peer looks like."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class SilentProxy:
    """Carries one connection to `address` until it is told to be silent. Both ends stay open, and
    both systems go on acknowledging, as behind a balancer whose other side has gone."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._silent = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def be_silent(self) -> None:
        """Take what comes, and carry nothing."""
        self._silent.set()

    def server_has_closed(self, seconds: float) -> bool:
        """Whether the server gives the connection up by itself."""
        self._threads[-1].join(seconds)
        return not self._threads[-1].is_alive()

    def close(self) -> None:
        """Let both ends go."""
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        server = socket.create_connection(self._target)
        self._sockets += [client, server]
        pairs = (client, server), (server, client)
        self._threads += [threading.Thread(target=self._carry, args=pair) for pair in pairs]
        for thread in self._threads[1:]:
            thread.start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if not self._silent.is_set():
                    sink.sendall(data)


@contextlib.contextmanager
def silent_proxy(address: str) -> Iterator[SilentProxy]:
    """One that is closed at the end."""
    with contextlib.closing(SilentProxy(address)) as proxy:
        yield proxy
