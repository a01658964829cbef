"""From which address somebody comes."""

from ipaddress import ip_address, ip_network

from rest_framework.throttling import BaseThrottle

NETWORK = 64  # bits: of IPv6, one customer has as many addresses as they like behind these


def address_of(request) -> str | None:
    """The address of the browser or program; of IPv6 its network. None where there is none, as behind a local socket.

    Behind proxies it is the one that the outermost of them was reached from (ASSAY_PROXIES in deploy/env.example).
    """
    try:
        address = ip_address(BaseThrottle().get_ident(request) or "")
    except ValueError:
        return None
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, NETWORK), strict=False).network_address)
