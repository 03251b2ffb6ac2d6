//! The client of one source: its connections, and everything that requests to it share.

use crate::client::probe_cache::ProbeCache;
use crate::client::trial_gate::{FormGates, TrialGate};
use crate::http::circuit_breaker::{Admission, CircuitBreaker, OpenCircuit};
use crate::http::deadline::Deadline;
use crate::http::exchange::Exchange;
use crate::http::hop_headers::HopHeaders;
use crate::http::http_client::HttpClient;
use crate::http::method::Methods;
use crate::http::rate_limit::{HostPermit, RequestedBy};
use crate::settings::SourceMapping;
use crate::static_repository::StaticRepository;
use crate::tape_repository::TapeRepository;
use http::Method;
use oaimend_oai::Request;
use oaimend_repository::{Failure, Outlook, Reason};
use oaimend_store::{SourceCapabilities, Store};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// The client of one source. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct SourceClient {
    http: HttpClient,
    breaker: Arc<Mutex<CircuitBreaker>>,
    pub(crate) methods: Arc<Methods>,
    pub(crate) refetch_gate: Arc<TrialGate>,
    pub(crate) form_gates: Arc<FormGates>,
    pub(crate) probe_cache: Arc<ProbeCache>,
    /// The fingerprint of the mapping.
    fingerprint: Arc<str>,
    /// Answers in place of a server if the source is a file.
    file: Option<FileRepository>,
}

/// A file that answers in place of a server.
#[derive(Clone, Debug)]
pub(crate) enum FileRepository {
    Static(Arc<StaticRepository>),
    Tape(Arc<TapeRepository>),
}

impl SourceClient {
    /// A client for a source.
    ///
    /// # Errors
    ///
    /// Its certificates cannot be read.
    pub fn new(mapping: &Arc<SourceMapping>) -> Result<Self, Failure> {
        let (breaker, refetch_gate, form_gates, probe_cache) = Default::default();
        Ok(Self {
            http: HttpClient::new(mapping)?,
            breaker,
            methods: Arc::new(Methods::new(mapping.quirks.method)),
            refetch_gate,
            form_gates,
            probe_cache,
            fingerprint: mapping.fingerprint().into(),
            file: None,
        })
    }

    /// The same client, with a file that answers in place of a server.
    pub(crate) fn with_file(self, file: FileRepository) -> Self {
        Self { file: Some(file), ..self }
    }

    /// The same client for the requests of one client of ours, or of the mirror: the limits of the source are divided
    /// fairly between them.
    pub fn requested_by(self, requested_by: RequestedBy) -> Self {
        Self { http: self.http.requested_by(requested_by), ..self }
    }

    /// Shares the limits of the host with another client: both send requests to the same host.
    pub(crate) fn share_host(&mut self, other: &Self) {
        self.http.share_host(&other.http);
    }

    /// The file that answers in place of a server, if there is one.
    pub(crate) fn file(&self) -> Option<&FileRepository> {
        self.file.as_ref()
    }

    /// The connections to the source.
    pub(crate) fn http(&self) -> &HttpClient {
        &self.http
    }

    /// The mapping of the repository.
    pub(crate) fn mapping(&self) -> &Arc<SourceMapping> {
        self.http.mapping()
    }

    /// The name of the source in failures.
    pub(crate) fn name(&self) -> Arc<str> {
        self.http.name()
    }

    /// The circuit breaker of the source.
    pub(crate) fn breaker(&self) -> MutexGuard<'_, CircuitBreaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the limits of the host allow a request.
    pub(crate) async fn acquire_permit(
        &self,
        is_list: bool,
        deadline: &mut Deadline,
    ) -> Result<HostPermit, Failure> {
        self.http.acquire_permit(is_list, deadline).await
    }

    /// Sends a query to the source; a file answers it itself. `headers` are those that depend on the harvester.
    pub(crate) async fn exchange(
        &self,
        query: &str,
        method: &Method,
        headers: &HopHeaders,
        deadline: &mut Deadline,
    ) -> Result<Exchange, Failure> {
        let Some(file) = &self.file else {
            return self.http.exchange(query, method, headers, deadline).await;
        };
        let request = Request::parse(query.as_bytes())
            .map_err(|refusal| Failure::new(Reason::Configuration, refusal.text))?;
        let body = match file {
            FileRepository::Static(repository) => repository.answer(&self.http, &request, deadline).await?,
            FileRepository::Tape(repository) => {
                repository.answer(&self.http, &request, deadline.now()).await?
            }
        };
        Ok(Exchange::from_file(self.mapping().base_url.clone(), body))
    }

    /// The detected capabilities of the source with this mapping.
    pub(crate) fn capabilities(&self, store: &Store) -> SourceCapabilities {
        store.capabilities.detected(&self.mapping().id, &self.fingerprint)
    }

    /// Stores detected capabilities of the source, and returns all of them.
    pub(crate) async fn learn(
        &self,
        store: &Store,
        lesson: impl FnOnce(&mut SourceCapabilities) + Send + 'static,
    ) -> SourceCapabilities {
        store.capabilities.update(&self.mapping().id, &self.fingerprint, lesson).await
    }

    /// Asks the circuit breaker whether a request may be sent now.
    pub(crate) fn admit(&self, now: SystemTime, request: Admission) -> Result<Admission, Failure> {
        let admitted = self.breaker().admit(now, request);
        admitted.map_err(|circuit| self.explain_open_circuit(&circuit))
    }

    fn explain_open_circuit(&self, circuit: &OpenCircuit) -> Failure {
        let OpenCircuit { secs, because, .. } = circuit;
        let name = self.name();
        let details = if circuit.is_alone {
            format!(
                "{name} has failed often at this request, which is paused for {secs} more seconds; other requests \
                 are sent; the last failure: {because}"
            )
        } else {
            format!(
                "{name} has failed often and is paused for {secs} more seconds; the last failure: {because}"
            )
        };
        let failure = Failure { retry_after_secs: *secs, ..Failure::new(Reason::CircuitOpen, details) };
        if circuit.is_permanent {
            Failure { outlook: Outlook::Permanent, ..failure }
        } else {
            self.judge_age(failure, circuit.age)
        }
    }

    /// The same failure, or a permanent one if its outage has lasted too long.
    pub(crate) fn judge_age(&self, failure: Failure, age: Duration) -> Failure {
        let is_old = age >= self.mapping().limits.outage_retry;
        match failure.outlook {
            Outlook::MayPass if is_old => Failure { outlook: Outlook::OldOutage(age), ..failure },
            _ => failure,
        }
    }
}
