"""What the OpenAPI document cannot say: which repositories the server has and searches, and which dates are
refused together.

schemathesis takes each refusal of parameters that match the schema for a fault, but `until` may not be before `from`, and a
query has a grammar.
"""

import re

import schemathesis

REPOSITORY = re.compile(r"[A-Za-z0-9_.~-]+(?:/[A-Za-z0-9_.~-]+)?\Z")
REPOSITORIES = ["x", "live", "own", "_all", "_federation", "_mirror/x", "none"]
SEARCHED = ["x", "none"]
TEXT = re.compile(r"[^\x00-\x1F\x7F]{1,500}\Z")
WORDS = re.compile(r"[A-Za-z0-9]+(?: [A-Za-z0-9]+){0,9}\Z")
DAY = len("2020-01-01")


@schemathesis.hook
def map_query(context, query):
    """Puts repositories of the server in the place of legal ids, so that most requests reach a list."""
    repository = (query or {}).get("repository")
    if isinstance(repository, str) and REPOSITORY.match(repository):
        repositories = SEARCHED if context.operation.path.endswith("/search") else REPOSITORIES
        query["repository"] = repositories[sum(repository.encode()) % len(repositories)]
    return query


@schemathesis.hook
def filter_query(context, query):
    """Leaves out lists that end before they begin, and legal texts that are no plain words: queries have a grammar."""
    first, last, words = (query or {}).get("from"), (query or {}).get("until"), (query or {}).get("q")
    if isinstance(words, str) and TEXT.match(words) and not WORDS.match(words):
        return False
    if isinstance(first, str) and isinstance(last, str):
        last = last + "T23:59:59Z" if len(last) == DAY else last
        return first <= last
    return True
