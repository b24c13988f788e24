"""Start a server with the built-in voice, say a sentence into hello.wav, stop the server."""

import signal
import subprocess
import tempfile

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

SENTENCE = "Hello! Text streams in, and speech streams out."


def main() -> None:
    """Needs `intone` and `intone-server` on the PATH."""
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(
            ["intone-server", "--engine", "builtin", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert server.stdout is not None
            address = server.stdout.readline().removeprefix("listening on ").strip()
            wait_until_ready(address)
            say = ["intone", "--server", address, "say", SENTENCE, "-o", "hello.wav"]
            subprocess.run(say, check=True)
            print("wrote hello.wav")
        except (grpc.RpcError, subprocess.CalledProcessError):
            log.seek(0)
            raise SystemExit(f"the demo failed; the server's log:\n{log.read()}") from None
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


def wait_until_ready(address: str) -> None:
    """Return when the model is loaded, as an orchestrator would find out."""
    with grpc.insecure_channel(address) as channel:
        request = HealthCheckRequest(service="readiness")
        for response in HealthStub(channel).Watch(request, timeout=60):
            if response.status == HealthCheckResponse.SERVING:
                return


if __name__ == "__main__":
    main()
