"""Who calls."""

from urllib.parse import unquote


def address_of(peer: str) -> str:
    """The address in what gRPC calls a peer, without its port; "" if it has none, as on a socket
    in the file system."""
    scheme, _, rest = unquote(peer).partition(":")
    if scheme not in ("ipv4", "ipv6"):
        return ""
    return rest.rpartition(":")[0].strip("[]")
