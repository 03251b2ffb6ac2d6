//! The order of the requests that wait for a host.
//!
//! Harvesters come first, then crawlers, then harvests of the mirror. Within a class the clients take turns: a client
//! with sixty waiting requests delays another client by one request, the one in flight. The requests of one client stay
//! in order. Pure: nothing waits here.

use std::collections::VecDeque;
use std::net::IpAddr;

/// Who waits for the response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedBy {
    /// A harvester, by the address that its quota counts; `None` for a client without a quota.
    Harvester(Option<IpAddr>),
    /// A crawler.
    Crawler(Option<IpAddr>),
    /// The mirror, or a retry of quarantined records, which can wait.
    Mirror,
}

/// Maximum number of requests that wait for one host.
const WAITING_MAX: usize = 4096;

/// A class of clients, in the order in which they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestClass {
    Harvester,
    Crawler,
    Mirror,
}

impl RequestClass {
    const ALL: [Self; 3] = [Self::Harvester, Self::Crawler, Self::Mirror];
}

impl RequestedBy {
    /// The class of the client.
    pub(super) const fn class(self) -> RequestClass {
        match self {
            Self::Harvester(_) => RequestClass::Harvester,
            Self::Crawler(_) => RequestClass::Crawler,
            Self::Mirror => RequestClass::Mirror,
        }
    }

    /// The client within the class.
    const fn client(self) -> Option<IpAddr> {
        match self {
            Self::Harvester(client) | Self::Crawler(client) => client,
            Self::Mirror => None,
        }
    }
}

/// A waiting request.
#[derive(Clone, Debug)]
struct WaitingRequest<T> {
    number: u64,
    is_list: bool,
    /// Wakes the request.
    waker: T,
}

/// The waiting requests of a client.
#[derive(Debug)]
struct ClientQueue<T> {
    client: Option<IpAddr>,
    requests: VecDeque<WaitingRequest<T>>,
}

/// The requests that wait for a host. `T` wakes one of them.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    /// The clients of each class. The client at the front has the next turn.
    classes: [VecDeque<ClientQueue<T>>; RequestClass::ALL.len()],
    /// The client of the last turn in each class, if more of its requests wait. It is at the back, and clients that come
    /// before the next turn pass it.
    last_turns: [Option<RequestedBy>; RequestClass::ALL.len()],
    count: usize,
    next_number: u64,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { classes: Default::default(), last_turns: Default::default(), count: 0, next_number: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Adds a request, and returns its number. `None` if too many wait.
    pub(super) fn push(&mut self, by: RequestedBy, is_list: bool, waker: T) -> Option<u64> {
        if self.count >= WAITING_MAX {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.count += 1;
        let last_turn = self.last_turns[by.class() as usize];
        let clients = self.clients(by);
        let waiting = WaitingRequest { number, is_list, waker };
        match clients.iter_mut().find(|queue| queue.client == by.client()) {
            Some(queue) => queue.requests.push_back(waiting),
            None => {
                // The client of the last turn is at the back. It has its next turn after this one.
                let had_turn =
                    |queue: &ClientQueue<T>| last_turn.is_some_and(|last| last.client() == queue.client);
                let position = clients.len() - usize::from(clients.back().is_some_and(had_turn));
                clients.insert(position, ClientQueue { client: by.client(), requests: [waiting].into() });
            }
        }
        Some(number)
    }

    /// The number of waiting requests.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// The first request that may be sent, with its number. `may_list` tells whether a class may request a list.
    pub(super) fn first(&self, may_list: impl Fn(RequestClass) -> bool) -> Option<(u64, &T)> {
        for (class, clients) in RequestClass::ALL.into_iter().zip(&self.classes) {
            let may_list = may_list(class);
            let mut requests = clients.iter().flat_map(|queue| &queue.requests);
            if let Some(first) = requests.find(|request| may_list || !request.is_list) {
                return Some((first.number, &first.waker));
            }
        }
        None
    }

    /// Removes a request that is sent now: the turn of its client is over.
    pub(super) fn take_turn(&mut self, by: RequestedBy, number: u64) {
        let position = self.remove(by, number);
        self.last_turns[by.class() as usize] = position.map(|_| by);
        let Some(position) = position else { return };
        let clients = self.clients(by);
        if let Some(queue) = clients.remove(position) {
            clients.push_back(queue);
        }
    }

    /// Removes a request. Returns the position of its client, if more of its requests wait.
    pub(super) fn remove(&mut self, by: RequestedBy, number: u64) -> Option<usize> {
        let clients = self.clients(by);
        let position = clients.iter().position(|queue| queue.client == by.client())?;
        let requests = &mut clients.get_mut(position)?.requests;
        let found = requests.iter().position(|request| request.number == number)?;
        requests.remove(found);
        let is_empty = requests.is_empty();
        if is_empty {
            clients.remove(position);
        }
        self.count -= 1;
        (!is_empty).then_some(position)
    }

    /// The clients of a class.
    fn clients(&mut self, by: RequestedBy) -> &mut VecDeque<ClientQueue<T>> {
        &mut self.classes[by.class() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, number]))
    }

    /// The order in which all waiting requests are sent.
    fn drain(queue: &mut FairQueue<RequestedBy>, may_list: impl Fn(RequestClass) -> bool) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some((number, &by)) = queue.first(&may_list) {
            queue.take_turn(by, number);
            order.push(number);
        }
        order
    }

    fn queue(requests: &[(RequestedBy, bool)]) -> FairQueue<RequestedBy> {
        let mut queue = FairQueue::default();
        for &(by, is_list) in requests {
            queue.push(by, is_list, by).expect("there is room");
        }
        queue
    }

    #[test]
    fn clients_take_turns() {
        let (one, other) = (RequestedBy::Harvester(client(1)), RequestedBy::Harvester(client(2)));
        let mut queue = queue(&[(one, true), (one, true), (one, true), (other, true), (other, true)]);
        assert_eq!(drain(&mut queue, |_| true), [0, 3, 1, 4, 2]);
        assert_eq!((queue.count, queue.classes.iter().map(VecDeque::len).sum::<usize>()), (0, 0));
    }

    #[test]
    fn a_client_waits_for_one_request_of_a_busy_client() {
        let (busy, other) = (RequestedBy::Harvester(client(1)), RequestedBy::Harvester(client(2)));
        let third = RequestedBy::Harvester(client(3));
        let mut queue = queue(&[(busy, true), (busy, true), (busy, true), (busy, true)]);
        // A request of the busy client is in flight when the other client sends its first one, and later its next one.
        queue.take_turn(busy, 0);
        assert_eq!(queue.push(other, true, other), Some(4));
        assert_eq!(queue.first(|_| true).map(|(number, _)| number), Some(4));
        queue.take_turn(other, 4);
        queue.take_turn(busy, 1);
        assert_eq!(queue.push(other, true, other), Some(5));
        assert_eq!(queue.push(third, true, third), Some(6));
        assert_eq!(drain(&mut queue, |_| true), [5, 6, 2, 3], "clients that have waited longer go first");
    }

    #[test]
    fn new_clients_do_not_pass_waiting_ones() {
        let busy = RequestedBy::Harvester(client(1));
        let mut queue = queue(&[(busy, true), (busy, true)]);
        for number in 2..10 {
            let new = RequestedBy::Harvester(client(number));
            queue.push(new, true, new);
        }
        assert_eq!(drain(&mut queue, |_| true), [0, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
    }

    #[test]
    fn classes_are_served_in_order() {
        let (mirror, crawler) = (RequestedBy::Mirror, RequestedBy::Crawler(client(1)));
        let harvester = RequestedBy::Harvester(client(1));
        let mut queue = queue(&[(mirror, true), (crawler, true), (harvester, true), (harvester, false)]);
        assert_eq!(drain(&mut queue, |_| true), [2, 3, 1, 0]);
    }

    #[test]
    fn single_records_pass_lists_that_may_not_be_sent() {
        let harvester = RequestedBy::Harvester(client(1));
        let crawler = RequestedBy::Crawler(client(2));
        let requests = [(harvester, true), (harvester, false), (crawler, true), (crawler, false)];
        assert_eq!(drain(&mut queue(&requests), |_| false), [1, 3]);
        let without_crawlers = |class| class != RequestClass::Crawler;
        assert_eq!(drain(&mut queue(&requests), without_crawlers), [0, 1, 3]);
    }

    #[test]
    fn requests_that_leave_change_no_turn() {
        let (one, other) = (RequestedBy::Harvester(client(1)), RequestedBy::Harvester(client(2)));
        let mut queue = queue(&[(one, true), (one, true), (other, true)]);
        queue.remove(one, 0);
        queue.remove(one, 7);
        assert_eq!(drain(&mut queue, |_| true), [1, 2]);
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut queue = FairQueue::default();
        for _ in 0..WAITING_MAX {
            assert!(queue.push(RequestedBy::Mirror, true, ()).is_some());
        }
        assert_eq!(queue.push(RequestedBy::Harvester(None), true, ()), None);
        queue.remove(RequestedBy::Mirror, 5);
        assert!(queue.push(RequestedBy::Harvester(None), true, ()).is_some());
    }
}
