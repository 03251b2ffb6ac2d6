//! Tests of the engine against its documentation: the invariants, the corpus, judges that do not know it.

mod corpus;
mod cuts;
mod forgery;
mod hostile;
mod invariants;
mod judges;
mod limits;
mod neighbours;
mod no_item_lost;
mod payload_content;
mod provenance;
mod recorded;
mod version_one;
