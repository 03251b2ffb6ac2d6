//! The places of the listeners that follow the feed.
//!
//! A connection that was lost without an end keeps its place until a write fails, which can take many minutes. Its client
//! connects again meanwhile. Therefore a client that uses its share gets the place of its oldest listener, instead of a
//! refusal, after which an `EventSource` would never connect again (WHATWG HTML, section 9.2.3).

use super::refusal::Refusal;
use crate::serve::clients::client_class::ClientNetwork;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of listeners that follow the feed at once.
const LISTENERS_MAX: usize = 64;
/// Maximum number of them for one client, so that none holds all places.
const CLIENT_LISTENERS_MAX: usize = 4;

/// The listeners that follow the feed now.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    /// The listeners of each client that has a share, the oldest one first.
    by_client: HashMap<ClientNetwork, VecDeque<Arc<Replaced>>>,
}

/// Whether a newer listener has the place.
#[derive(Debug, Default)]
struct Replaced(AtomicBool);

/// The place of a listener. Dropping it frees the place, unless a newer listener has it.
#[derive(Debug)]
pub(super) struct ListenerPlace {
    listeners: Arc<Listeners>,
    client: Option<ClientNetwork>,
    replaced: Arc<Replaced>,
}

impl Listeners {
    /// Takes a place for a listener: the one of the oldest listener of the client if it uses its share. `None` is this
    /// machine, which has no share of its own.
    ///
    /// # Errors
    ///
    /// There are as many listeners as may be at once.
    pub(super) fn take_place(
        self: &Arc<Self>,
        client: Option<ClientNetwork>,
    ) -> Result<ListenerPlace, Refusal> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = Arc::default();
        if !client.is_some_and(|client| places.replace_oldest(client)) {
            if places.taken >= LISTENERS_MAX {
                return Err(Refusal::Busy(
                    "as many listeners follow the changes as may at once; read pages, or try again",
                ));
            }
            places.taken += 1;
        }
        if let Some(client) = client {
            places.by_client.entry(client).or_default().push_back(Arc::clone(&replaced));
        }
        Ok(ListenerPlace { listeners: Arc::clone(self), client, replaced })
    }
}

impl Places {
    /// Takes the place of the oldest listener of a client, if the client uses its share.
    fn replace_oldest(&mut self, client: ClientNetwork) -> bool {
        let listeners = self.by_client.get_mut(&client);
        let full = listeners.filter(|listeners| listeners.len() >= CLIENT_LISTENERS_MAX);
        let Some(oldest) = full.and_then(VecDeque::pop_front) else { return false };
        oldest.0.store(true, Ordering::Relaxed);
        true
    }
}

impl ListenerPlace {
    /// Whether a newer listener has the place, so that this one ends.
    pub(super) fn is_replaced(&self) -> bool {
        self.replaced.0.load(Ordering::Relaxed)
    }
}

impl Drop for ListenerPlace {
    fn drop(&mut self) {
        let mut places = self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_replaced() {
            return;
        }
        places.taken -= 1;
        if let Some(client) = self.client
            && let Some(listeners) = places.by_client.get_mut(&client)
        {
            listeners.retain(|listener| !Arc::ptr_eq(listener, &self.replaced));
            if listeners.is_empty() {
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
    fn one_client_does_not_hold_all_places_and_its_newest_listeners_are_served() {
        let listeners: Arc<Listeners> = Arc::default();
        let take_place = |number: usize| {
            let address = [192, 0, 2, u8::try_from(number).expect("it is small")];
            listeners.take_place(Some(ClientNetwork::of(IpAddr::from(address))))
        };
        let mut places: Vec<ListenerPlace> =
            (0..=CLIENT_LISTENERS_MAX).map(|_| take_place(0).expect("its newest are served")).collect();
        let replaced: Vec<bool> = places.iter().map(ListenerPlace::is_replaced).collect();
        assert_eq!(replaced, [true, false, false, false, false]);
        assert_eq!(listeners.0.lock().expect("no panic").taken, CLIENT_LISTENERS_MAX);
        // The end of the replaced one frees no place.
        drop(places.remove(0));
        places
            .extend((CLIENT_LISTENERS_MAX..LISTENERS_MAX).map(|number| take_place(number).expect("a place")));
        assert_eq!(take_place(200).expect_err("all are taken").parts().0, 503);
        assert!(listeners.take_place(None).is_err());
        places.push(take_place(0).expect("the place of its oldest one"));
        assert!(places[0].is_replaced() && !places[1].is_replaced());
        drop(places.remove(1));
        places.push(take_place(0).expect("a place that is free again"));
        assert!(!places[1].is_replaced(), "its share was not used");
        places.clear();
        let places = listeners.0.lock().expect("no panic");
        assert_eq!((places.taken, places.by_client.len()), (0, 0));
    }
}
