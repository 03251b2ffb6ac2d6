//! Parts of the mirror as OAI-PMH repositories: query sets, views, ODL-Search, ODL-Browse and ODL-Recent.
