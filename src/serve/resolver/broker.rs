//! Asks configured services by GetRecord whether they have a record (Liu et al., "A Scalable Architecture for Harvest-Based
//! Digital Libraries", 2002, section 9.4).
//!
//! A page waits for them for at most [`WAIT_MAX`]. A service that fails or is too slow is named as not reached, and is left
//! alone for a while. One that did not get its turn is named as such, and is requested by the next page. Its requests are
//! those of a source: within its limits, and only to addresses that a source may have.

use crate::config::Service;
use crate::serve::served::ServedRepositories;
use futures::future::join_all;
use oaimend_base::clock;
use oaimend_oai::{ErrorCode, Request};
use oaimend_pages::resolver::{ServiceResult, ServiceState, service_link};
use oaimend_repository::{Event, HarvesterTraits, Reason, Repository as _, RepositoryRequest};
use oaimend_upstream::settings::SourceMapping;
use oaimend_upstream::{LiveRepository, RequestedBy};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// How long a page waits for all services.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// The part of [`WAIT_MAX`] that a service has at least. If it cannot have it, it is not requested.
const ANSWER_MIN: Duration = Duration::from_secs(1);
/// The part of this time in which the page learns that the limits of the host did not allow the request.
const REPORT_TIME: Duration = Duration::from_millis(100);
/// Maximum number of services that are asked at once, for all pages.
const REQUESTS_MAX: usize = 8;
/// How long the response of a service is used.
const KEPT_MAX: Duration = Duration::from_secs(3_600);
/// How long a service is left alone after it was not reached.
const PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of bytes of the responses that are kept, with their keys.
const KEPT_BYTES_MAX: u64 = 8 << 20;
/// The parts of the table of kept responses, each with a lock of its own. An entry must fit into one of them.
const SHARDS: usize = 4;
/// Bytes of a kept response beside its base URL and identifier.
const ENTRY_BYTES: u64 = 200;
/// A guess of the bytes of a kept response, for the size of the table.
const TYPICAL_BYTES: u64 = 400;
/// The format that every repository has.
const FORMAT: &str = "oai_dc";

/// The services, and what they have answered.
#[derive(Debug)]
pub(crate) struct Broker {
    services: RwLock<Arc<Vec<Service>>>,
    kept: Cache<Key, Kept, ByBytes>,
    /// The end of the pause of each service, by its base URL, by [`clock::uptime`].
    paused: Mutex<HashMap<String, Duration>>,
    permits: Semaphore,
}

/// Base URL and identifier.
type Key = (String, String);

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<Key, Kept> for ByBytes {
    fn weight(&self, (base_url, identifier): &Key, _: &Kept) -> u64 {
        (base_url.len() + identifier.len()) as u64 + ENTRY_BYTES
    }
}

/// The response of a service.
#[derive(Clone, Copy, Debug)]
struct Kept {
    has_record: bool,
    /// By [`clock::uptime`].
    at: Duration,
}

/// Why it is not known whether a service has a record.
#[derive(Clone, Copy, Debug)]
enum NoResponse {
    /// The service failed or is too slow.
    NotReached,
    /// It did not get its turn.
    Busy,
}

impl Broker {
    /// A broker of these services.
    pub(crate) fn new(services: Vec<Service>) -> Self {
        let count = usize::try_from(KEPT_BYTES_MAX / TYPICAL_BYTES).unwrap_or_default();
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(count)
            .weight_capacity(KEPT_BYTES_MAX)
            .build()
            .expect("both capacities are set");
        Self {
            services: RwLock::new(Arc::new(services)),
            kept: Cache::with_options(
                options,
                ByBytes,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            paused: Mutex::default(),
            permits: Semaphore::new(REQUESTS_MAX),
        }
    }

    /// Replaces the services. The next request uses them.
    pub(crate) fn set(&self, services: Vec<Service>) {
        *self.services.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(services);
    }

    /// Whether there is a service.
    pub(crate) fn has_services(&self) -> bool {
        !self.services().is_empty()
    }

    fn services(&self) -> Arc<Vec<Service>> {
        Arc::clone(&self.services.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Which services have a record, in the order of the configuration. `None`: nobody is asked.
    pub(crate) async fn ask(
        &self,
        served: &ServedRepositories,
        identifier: Option<&str>,
    ) -> Vec<ServiceResult> {
        let services = self.services();
        let Some(identifier) = identifier else {
            let result = |service: &Service| result(service, ServiceState::NotRequested, "");
            return services.iter().map(result).collect();
        };
        let deadline = Instant::now() + WAIT_MAX;
        let mut requests = Vec::with_capacity(services.len());
        for service in services.iter() {
            requests.push(self.state(deadline, served, service, identifier));
        }
        let results = services.iter().zip(join_all(requests).await);
        results.map(|(service, state)| result(service, state, identifier)).collect()
    }

    /// Whether a service has a record, from its last response or from a new one. Concurrent requests share it.
    async fn state(
        &self,
        deadline: Instant,
        served: &ServedRepositories,
        service: &Service,
        identifier: &str,
    ) -> ServiceState {
        let key = (service.source.base_url.to_string(), identifier.to_owned());
        let now = clock::uptime();
        self.kept.remove_if(&key, |kept| now.saturating_sub(kept.at) > KEPT_MAX);
        let request = self.kept.get_or_insert_async(&key, async {
            if self.is_paused(service) {
                return Err(NoResponse::NotReached);
            }
            // A service that waits for others is not to blame.
            let permit = timeout_at(deadline - ANSWER_MIN, self.permits.acquire()).await;
            let left = deadline.saturating_duration_since(Instant::now());
            // Another page may have waited for the same response before.
            if left < ANSWER_MIN {
                return Err(NoResponse::Busy);
            }
            let Ok(Ok(_permit)) = permit else { return Err(NoResponse::Busy) };
            let response = timeout_at(deadline, has_record(served, service, left, identifier)).await;
            let response = response.unwrap_or(Err(NoResponse::NotReached));
            if let Err(NoResponse::NotReached) = response {
                self.pause(service);
            }
            Ok(Kept { has_record: response?, at: clock::uptime() })
        });
        match request.await {
            Ok(Kept { has_record: true, .. }) => ServiceState::Found,
            Ok(Kept { has_record: false, .. }) => ServiceState::NotFound,
            Err(NoResponse::NotReached) => ServiceState::NotReached,
            Err(NoResponse::Busy) => ServiceState::Busy,
        }
    }

    fn is_paused(&self, service: &Service) -> bool {
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::uptime();
        paused.retain(|_, until| now < *until);
        paused.contains_key(service.source.base_url.as_str())
    }

    fn pause(&self, service: &Service) {
        let until = clock::uptime() + PAUSE;
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.entry(service.source.base_url.to_string()).or_insert(until);
    }
}

fn result(service: &Service, state: ServiceState, identifier: &str) -> ServiceResult {
    let is_found = state == ServiceState::Found;
    let url = is_found.then(|| service_link(&service.link, identifier));
    ServiceResult { name: service.name.clone(), state, url }
}

/// Asks a service for a record, within this time.
async fn has_record(
    served: &ServedRepositories,
    service: &Service,
    left: Duration,
    identifier: &str,
) -> Result<bool, NoResponse> {
    let source = &service.source;
    let client = served.sources.client_for(source).map_err(|_| NoResponse::NotReached)?;
    // A wait for the limits of the host ends before the page does, as busy.
    let mut mapping = SourceMapping::clone(source);
    mapping.limits.first_record_timeout = left.saturating_sub(REPORT_TIME);
    let repository = LiveRepository {
        mapping: Arc::new(mapping),
        client: client.requested_by(RequestedBy::Harvester(None)),
        store: served.store.clone(),
        clock: Arc::clone(&served.clock),
    };
    let request = Request::get_record(identifier, FORMAT);
    let echo = Arc::new(request.to_echo(source.base_url.as_str()));
    let via = served.via.to_str().unwrap_or_default().to_owned();
    let request = RepositoryRequest {
        request,
        echo,
        via,
        harvester: HarvesterTraits::default(),
        in_one_piece: false,
        reports_records: true,
    };
    let mut events = repository.answer(request);
    let mut has_record = false;
    while let Some(event) = events.next().await {
        match event {
            Event::Records(records) => {
                has_record |= records.iter().any(|record| record.identifier == identifier && !record.deleted);
            }
            Event::End(summary) => {
                return match summary.page.error {
                    Some(ErrorCode::IdDoesNotExist | ErrorCode::CannotDisseminateFormat) => Ok(false),
                    Some(_) => Err(NoResponse::NotReached),
                    None => Ok(has_record),
                };
            }
            // The limits of the source are used up.
            Event::Failed(failure, ..) if failure.reason == Reason::Busy => return Err(NoResponse::Busy),
            Event::Failed(..) => return Err(NoResponse::NotReached),
            Event::Head(_) | Event::Body(_) | Event::Quarantined(_) => {}
        }
    }
    Err(NoResponse::NotReached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_responses_are_limited_in_bytes() {
        let broker = Broker::new(Vec::new());
        for number in 0..1_000 {
            let identifier = format!("{number}{}", "x".repeat(64 << 10));
            broker.kept.insert(
                ("http://s.example".to_owned(), identifier),
                Kept { has_record: true, at: Duration::ZERO },
            );
        }
        let bytes: usize = broker.kept.iter().map(|((_, identifier), _)| identifier.len()).sum();
        assert!((1 << 20..=8 << 20).contains(&bytes), "{bytes}");
    }
}
