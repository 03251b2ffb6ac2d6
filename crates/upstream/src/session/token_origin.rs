//! The origin of a token: the pages that lead to it, as a hash.
//!
//! Many sources give the same tokens to all their lists: the token of the second page is always `100`. A page after such
//! a token may be shared by harvests that received the same pages before it, and by no others: in a list that changed
//! in between, the records of all later pages have moved. The origin contains the arguments of the list, and of each page
//! the items and the sizes that it announces. In a list that goes in circles, a token has another origin in each round.

use oaimend_oai::{Argument, Request, Verb};
use oaimend_store::{RepositoryId, Store, TokenKey, TokenOrigin};
use siphasher::sip::SipHasher13;
use std::hash::Hasher as _;

/// The `completeListSize` and the `totalElements` of a page.
pub(crate) type ListSizes = (Option<u64>, Option<u64>);

/// The origin of the token that a request contains; `None` if the token is ambiguous: pages that it requests are neither
/// coalesced nor cached. A token that the ledger does not know, such as one of ours, is an origin by itself.
pub(crate) async fn find_origin(store: &Store, repository: &str, verb: Verb, token: &str) -> Option<u64> {
    match store.ledger.token_origin(RepositoryId(repository), verb, token).await {
        TokenOrigin::Unknown => Some(origin_of_unknown_token(&store.token_key, token)),
        TokenOrigin::Known(origin) => Some(origin),
        TokenOrigin::Ambiguous => None,
    }
}

/// The origin of the pages of a request; `None` if its token is ambiguous.
pub async fn origin_of_request(store: &Store, repository: &str, request: &Request) -> Option<u64> {
    match request.argument(Argument::ResumptionToken) {
        Some(token) => find_origin(store, repository, request.verb(), token).await,
        None => Some(origin_of_list(&store.token_key, request)),
    }
}

/// The origin of the first page of a list.
pub(crate) fn origin_of_list(key: &TokenKey, first: &Request) -> u64 {
    let mut arguments: Vec<&str> = first.query().split('&').collect();
    arguments.sort_unstable();
    let mut hash = start(key, b"list");
    arguments.iter().for_each(|argument| write_text(&mut hash, argument));
    hash.finish()
}

/// The origin of a token that the ledger does not know.
pub(crate) fn origin_of_unknown_token(key: &TokenKey, token: &str) -> u64 {
    let mut hash = start(key, b"token");
    write_text(&mut hash, token);
    hash.finish()
}

/// The origin of the token on a page. `before` is that of the page, and `items` are the hashes of its items.
pub(crate) fn origin_after_page(key: &TokenKey, before: u64, sizes: ListSizes, items: &[u64]) -> u64 {
    let mut hash = start(key, b"page");
    hash.write_u64(before);
    for size in [sizes.0, sizes.1] {
        hash.write_u8(u8::from(size.is_some()));
        hash.write_u64(size.unwrap_or_default());
    }
    items.iter().for_each(|item| hash.write_u64(*item));
    hash.finish()
}

fn start(key: &TokenKey, kind: &[u8]) -> SipHasher13 {
    let mut hash = SipHasher13::new_with_key(key.items());
    hash.write(kind);
    hash
}

fn write_text(hash: &mut SipHasher13, text: &str) {
    hash.write_u64(text.len() as u64);
    hash.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: ListSizes = (Some(4), None);

    #[test]
    fn origin_depends_on_arguments_sizes_and_items_of_all_pages() {
        let key = TokenKey::new([1; 32]);
        let list = |query: &str| origin_of_list(&key, &Request::parse(query.as_bytes()).expect("valid"));
        let first = list("verb=ListRecords&metadataPrefix=a&set=s");
        assert_eq!(first, list("verb=ListRecords&set=s&metadataPrefix=a"), "the order has no meaning");
        let after = |before, sizes, items: &[u64]| origin_after_page(&key, before, sizes, items);
        let second = after(first, SIZES, &[1, 2]);
        assert_eq!(second, after(first, SIZES, &[1, 2]));
        let others = [
            after(list("verb=ListRecords&metadataPrefix=b&set=s"), SIZES, &[1, 2]),
            after(list("verb=ListRecords&metadataPrefix=a"), SIZES, &[1, 2]),
            after(first, (Some(5), None), &[1, 2]),
            after(first, (None, Some(4)), &[1, 2]),
            after(first, (None, None), &[1, 2]),
            after(first, SIZES, &[2, 1]),
            after(first, SIZES, &[1]),
            after(second, SIZES, &[1, 2]),
            origin_of_unknown_token(&key, "1"),
        ];
        assert!(!others.contains(&second), "{others:?}");
    }
}
