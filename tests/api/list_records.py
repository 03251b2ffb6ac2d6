"""Lists all records of a repository with a client that openapi-python-client made.

    list_records.py URL REPOSITORY COUNT
"""

import sys

from oaimend_client import Client
from oaimend_client.api.oaimend import get_record, get_repository, list_records
from oaimend_client.models import Problem, RecordPage
from oaimend_client.types import UNSET

url, repository, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = Client(base_url=url)
described = get_repository.sync(id=repository, client=client)
assert described.id == repository, described

seen, cursor = [], UNSET
while True:
    page = list_records.sync(client=client, repository=repository, limit=50, cursor=cursor)
    assert isinstance(page, RecordPage), page
    seen += page.records
    if page.next_ is None:
        break
    cursor = page.next_

assert len({record.identifier for record in seen}) == len(seen) == count, len(seen)
assert all(record.metadata for record in seen if not record.deleted)
one = get_record.sync(client=client, repository=repository, identifier=seen[0].identifier)
assert one.metadata == seen[0].metadata, one
refused = list_records.sync(client=client, repository="none")
assert isinstance(refused, Problem) and refused.status == 404, refused
print(f"the generated client listed {len(seen)} records")
