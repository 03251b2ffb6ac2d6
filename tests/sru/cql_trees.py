"""Parses CQL with cql-parser, which is not ours.

A JSON array of queries in stdin gives a JSON array of their trees in stdout. The tree of a refused query is null.
"""

import json
import logging
import sys

from cql import CQLParser12
from cql.lexer import CQLLexer
from cql.parser import CQLTriple


def modifiers_of(item):
    return [[str(modifier.name), modifier.comparitor, modifier.value] for modifier in item.modifiers or []]


def tree_of(node):
    if isinstance(node, CQLTriple):
        operator = node.operator
        tree = [operator.value.lower(), modifiers_of(operator), tree_of(node.left), tree_of(node.right)]
    elif node.index is None:
        tree = ["term", node.term]
    else:
        relation = [str(node.relation.comparitor), modifiers_of(node.relation)]
        tree = ["clause", str(node.index), relation, node.term]
    if node.prefixes:
        tree = ["scope", [[prefix.prefix, prefix.uri] for prefix in node.prefixes], tree]
    return tree


def main():
    logging.disable(logging.CRITICAL)
    lexer = CQLLexer()
    lexer.build()
    parser = CQLParser12()
    parser.build(lexer)
    trees = []
    for query in json.load(sys.stdin):
        try:
            parsed = parser.parse(query)
            keys = [[str(key.index), modifiers_of(key)] for key in parsed.root.sortSpecs]
            trees.append([tree_of(parsed.root), keys])
        except Exception:  # cql-parser fails in several ways
            trees.append(None)
    json.dump(trees, sys.stdout)


main()
