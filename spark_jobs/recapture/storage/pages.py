"""Read the pages of a listing as XML, and reject a listing that repeats itself or does not end."""

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree.ElementTree import Element

from azure.core.pipeline.policies import ContentDecodePolicy

from recapture.storage.refusals import ENDLESS, FOREIGN, GARBLED
from recapture.storage.use import count_response

PAGES_WITHOUT_PROGRESS = 1_000
"""Maximum number of successive pages without a new name. The service may send empty pages, for deleted blobs."""
REQUEST_ID = "x-ms-request-id"
"""Header of every answer of the service."""
_LISTS = re.compile(r"[?&]comp=list(?:&|$)")


class AnswerError(Exception):
    """An answer that is a success and cannot be used; its text is GARBLED, FOREIGN or ENDLESS."""


_listed = threading.local()
"""The last page that each thread listed, as `answer`."""


def checked(response: Any) -> None:
    """Count the request, and keep a page. Raise AnswerError for a success that is not the service's, or no page.

    A hook of the client. It is not one of a single request: the SDK forgets that one when it sends a request again,
    after a broken connection.
    """
    count_response(response)
    answer = response.http_response
    if answer.status_code >= 300:
        return
    if REQUEST_ID not in answer.headers:
        raise AnswerError(FOREIGN)
    if _LISTS.search(response.http_request.url):
        content = answer.body()
        is_page = b"<EnumerationResults" in content[:1_000] and b"<Blobs" in content
        if not is_page or "xml" not in answer.headers.get("Content-Type", ""):
            raise AnswerError(GARBLED)  # the SDK would take other XML for an empty page
        _listed.answer = response


def pages(listing: Callable[..., Any], **arguments: Any) -> Iterator[Element]:
    """Call a listing method of the client and yield the pages. Raise AnswerError if an answer is not a page.

    The pages are XML: the SDK takes forty times as long to make its own objects from them.
    """
    progress = _Progress()
    for _ in listing(**arguments).by_page():
        page: Element = _listed.__dict__.pop("answer").context[ContentDecodePolicy.CONTEXT_NAME]
        progress.require_more_after(page)
        yield page


def date_of(listing: Callable[..., Any]) -> str:
    """Return the Date of the service's answer to a listing. Raise AnswerError if the answer is not a page."""
    next(iter(listing(results_per_page=1).by_page()), None)
    return _listed.__dict__.pop("answer").http_response.headers.get("Date") or ""


class _Progress:
    """What the pages of a listing had so far."""

    def __init__(self) -> None:
        self._markers: set[str] = set()
        self._starts: set[str] = set()
        self._idle = 0

    def require_more_after(self, page: Element) -> None:
        """Raise AnswerError if a page repeats a marker or a blob, or if too many pages have no new name.

        A folder may be on two pages: its blobs can be too many for one.
        """
        items = page.findall("Blobs/*")
        names = [item.findtext("Name") or "" for item in items]
        is_new = bool(names) and names[0] not in self._starts
        self._idle = 0 if is_new else self._idle + 1
        marker = page.findtext("NextMarker")
        if (
            len(set(names)) < len(names)
            or (items and items[0].tag == "Blob" and not is_new)
            or (marker and (marker in self._markers or self._idle > PAGES_WITHOUT_PROGRESS))
        ):
            raise AnswerError(ENDLESS)
        self._starts.update(names[:1])
        self._markers.add(marker or "")
