//! Asks configured services by GetRecord whether they have a record (Liu et al., "A Scalable Architecture for Harvest-Based
//! Digital Libraries", 2002, section 9.4).
//!
//! A page waits for them for at most [`WAIT_MAX`]. A service that fails or is too slow is named as not reached, and is left
//! alone for a while. Its requests are those of a source: within its limits, and only to addresses that a source may have.

use crate::config::Service;
use crate::serve::served::ServedRepositories;
use futures::future::join_all;
use oaimend_base::clock;
use oaimend_oai::{ErrorCode, Request};
use oaimend_pages::resolver::{ServiceResult, ServiceState, service_link};
use oaimend_repository::{Event, HarvesterTraits, Repository as _, RepositoryRequest};
use oaimend_upstream::{LiveRepository, RequestedBy};
use quick_cache::sync::Cache;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// How long a page waits for all services.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Maximum number of services that are asked at once, for all pages.
const REQUESTS_MAX: usize = 8;
/// How long the response of a service is used.
const KEPT_MAX: Duration = Duration::from_secs(3_600);
/// How long a service is left alone after it was not reached.
const PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of responses that are kept. Each needs some hundred bytes.
const KEPT_COUNT_MAX: usize = 20_000;
/// The format that every repository has.
const FORMAT: &str = "oai_dc";

/// The services, and what they have answered.
#[derive(Debug)]
pub(crate) struct Broker {
    services: RwLock<Arc<Vec<Service>>>,
    /// By base URL and identifier.
    kept: Cache<(String, String), Kept>,
    /// The end of the pause of each service, by its base URL, by [`clock::uptime`].
    paused: Mutex<HashMap<String, Duration>>,
    permits: Semaphore,
}

/// The response of a service.
#[derive(Clone, Copy, Debug)]
struct Kept {
    has_record: bool,
    /// By [`clock::uptime`].
    at: Duration,
}

/// A service has failed.
#[derive(Clone, Copy, Debug)]
struct NotReached;

impl Broker {
    /// A broker of these services.
    pub(crate) fn new(services: Vec<Service>) -> Self {
        Self {
            services: RwLock::new(Arc::new(services)),
            kept: Cache::new(KEPT_COUNT_MAX),
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
                return Err(NotReached);
            }
            // A service that waits for others is not to blame.
            let permit = timeout_at(deadline, self.permits.acquire()).await;
            let Ok(Ok(_permit)) = permit else { return Err(NotReached) };
            let response = timeout_at(deadline, has_record(served, service, identifier)).await;
            let has_record = response.unwrap_or(Err(NotReached)).inspect_err(|_| self.pause(service))?;
            Ok(Kept { has_record, at: clock::uptime() })
        });
        match request.await {
            Ok(Kept { has_record: true, .. }) => ServiceState::Found,
            Ok(Kept { has_record: false, .. }) => ServiceState::NotFound,
            Err(NotReached) => ServiceState::NotReached,
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

/// Asks a service for a record.
async fn has_record(
    served: &ServedRepositories,
    service: &Service,
    identifier: &str,
) -> Result<bool, NotReached> {
    let source = &service.source;
    let client = served.sources.client_for(source).map_err(|_| NotReached)?;
    let repository = LiveRepository {
        mapping: Arc::clone(source),
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
                    Some(_) => Err(NotReached),
                    None => Ok(has_record),
                };
            }
            Event::Failed(..) => return Err(NotReached),
            Event::Head(_) | Event::Body(_) | Event::Quarantined(_) => {}
        }
    }
    Err(NotReached)
}
