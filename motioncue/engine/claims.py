"""The places that one engine or relay sends to, at which nobody else may drive the platform."""

import logging
from collections.abc import Sequence

from motioncue.engine.assembly import streams_of
from motioncue.errors import EndpointError
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Output
from motioncue.transports.claim import Claim, place_of
from motioncue.transports.endpoint import parse_endpoint
from motioncue.transports.udp import resolved

__all__ = ["Claims"]

log = logging.getLogger("motioncue")


class Claims:
    """The claims of one engine or relay, until they are closed or this object or its process ends."""

    def __init__(self, outputs: Sequence[Output], platform: Platform | None) -> None:
        self._claims: dict[str, tuple[str, Claim]] = {}  # by their place, with the output's key
        try:
            for output in outputs:
                for name, (url, _) in streams_of(output, platform).items():
                    self._add(f"output.{name}", url, output.shared)
        except BaseException:
            self.close()
            raise

    def _add(self, key: str, url: str, shared: bool) -> None:
        """Claim the place of one stream of packets."""
        endpoint = parse_endpoint(url)
        try:
            place = place_of(endpoint, None if endpoint.scheme == "serial" else resolved(endpoint))
        except (OSError, UnicodeError):  # nothing can be sent there: who opens it says why
            return
        if place in self._claims:
            if not shared:
                raise EndpointError(
                    f"{key}: found {url!r}, where {self._claims[place][0]} is sent already (all addresses of this "
                    "machine count as one); allowed is a port of its own for each stream, or output.shared = true"
                )
            return
        claim = Claim(place)
        self._claims[place] = key, claim
        if not claim.holder:
            return
        if not shared:
            wish = (
                "" if endpoint.scheme == "serial" else ", or set output.shared = true if both are meant to send there"
            )
            raise EndpointError(f"{key}: {claim.holder} drives the platform at {url} already; end it first{wish}")
        log.warning("%s: %s drives the platform at %s too (output.shared)", key, claim.holder, url)

    def close(self) -> None:
        """Give all claims up."""
        for _, claim in self._claims.values():
            claim.release()
