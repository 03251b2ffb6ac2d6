//! The places of the listeners that follow the feed.

use super::refusal::Refusal;
use crate::serve::clients::client_class::ClientNetwork;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of listeners that follow the feed at once.
const LISTENERS_MAX: usize = 64;
/// Maximum number of them of one client, so that none holds all places.
const CLIENT_LISTENERS_MAX: usize = 4;

/// The listeners that follow the feed now.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    /// Those of clients that have a share.
    by_client: HashMap<ClientNetwork, usize>,
}

/// The place of a listener. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct ListenerPlace {
    listeners: Arc<Listeners>,
    client: Option<ClientNetwork>,
}

impl Listeners {
    /// A place for a listener. `None` is this machine, which has no share of its own.
    ///
    /// # Errors
    ///
    /// There are as many listeners as may be at once, of all clients or of this one.
    pub(super) fn place(self: &Arc<Self>, client: Option<ClientNetwork>) -> Result<ListenerPlace, Refusal> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = client.and_then(|client| places.by_client.get(&client)).copied().unwrap_or_default();
        if of_client >= CLIENT_LISTENERS_MAX {
            return Err(Refusal::Busy(
                "as many listeners of your address follow the changes as may at once; close one of them, or read pages",
            ));
        }
        if places.taken >= LISTENERS_MAX {
            return Err(Refusal::Busy(
                "as many listeners follow the changes as may at once; read pages, or try again",
            ));
        }
        places.taken += 1;
        if let Some(client) = client {
            places.by_client.insert(client, of_client + 1);
        }
        Ok(ListenerPlace { listeners: Arc::clone(self), client })
    }
}

impl Drop for ListenerPlace {
    fn drop(&mut self) {
        let mut places = self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.taken -= 1;
        if let Some(client) = self.client
            && let Some(of_client) = places.by_client.get_mut(&client)
        {
            *of_client -= 1;
            if *of_client == 0 {
                places.by_client.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn one_client_does_not_hold_all_places() {
        let listeners: Arc<Listeners> = Arc::default();
        let place = |number: usize| {
            let address = [192, 0, 2, u8::try_from(number).expect("it is small")];
            listeners.place(Some(ClientNetwork::of(IpAddr::from(address))))
        };
        let mut taken: Vec<ListenerPlace> =
            (0..CLIENT_LISTENERS_MAX).map(|_| place(0).expect("a place of its share")).collect();
        let refused = place(0).expect_err("its share is used").parts();
        assert_eq!((refused.0, refused.1.contains("your address")), (503, true));
        taken.extend((CLIENT_LISTENERS_MAX..LISTENERS_MAX).map(|number| place(number).expect("a place")));
        assert!(place(200).expect_err("all are taken").parts().1.starts_with("as many listeners follow"));
        assert!(listeners.place(None).is_err());
        drop(taken.remove(0));
        taken.push(place(0).expect("its place is free again"));
        taken.clear();
        let places = listeners.0.lock().expect("no panic");
        assert_eq!((places.taken, places.by_client.len()), (0, 0));
    }
}
