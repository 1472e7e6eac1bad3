"""Fetch one file of a project from the package index that pip is set up for, check it, and run nothing of it.

usage: fetch.py PROJECT FILE SHA256 DESTINATION
"""

import hashlib
import html.parser
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from pip._internal.models.index import PyPI


class Links(html.parser.HTMLParser):
    """Collects the links of a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        """Keep a link."""
        self.found += [value for name, value in attrs if tag == "a" and name == "href"]


def index_url():
    """Return the address of the index: pip's setting, or its default."""
    setting = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    )
    return setting.stdout.strip() or PyPI.simple_url


def main(project, file, sha256, destination):
    """Fetch and check."""
    page = f"{index_url().rstrip('/')}/{project}/"
    links = Links()
    links.feed(urllib.request.urlopen(page, timeout=60).read().decode())
    addresses = (urllib.parse.urljoin(page, link) for link in links.found)
    address = next((each for each in addresses if urllib.parse.urlparse(each).path.endswith(f"/{file}")), None)
    if address is None:
        sys.exit(f"{project}: the index has no file {file}")
    data = urllib.request.urlopen(address, timeout=300).read()
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        sys.exit(f"{file}: sha256 is {found}, allowed is {sha256}")
    Path(destination).write_bytes(data)


main(*sys.argv[1:])
