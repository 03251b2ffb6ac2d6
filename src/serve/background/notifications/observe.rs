//! The state of all repositories, as far as operators are notified of it.

use crate::config::Mapping;
use crate::notify::{Observation, Outage, QuarantineUsage};
use crate::serve::net::tls_listener::TlsListener;
use crate::serve::served::ServedRepositories;
use oaimend_base::clock;
use oaimend_mirror::status::repository_status;
use oaimend_oai::datestamp;
use oaimend_store::RepositoryActivity;
use std::collections::HashMap;

/// Reads the state of all repositories.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// The deletions that wait for a confirmation, by repository, after this number of harvests. Only harvests change
    /// it.
    held: HashMap<String, (u64, u64)>,
}

impl Observer {
    /// The state of the program, and of each repository in the order of their ids.
    pub(super) async fn observe(
        &mut self,
        served: &ServedRepositories,
        tls: Option<&TlsListener>,
    ) -> Vec<Observation> {
        let mappings = served.repositories.all();
        self.held.retain(|id, _| mappings.contains_key(id));
        let sizes = served.store.quarantine.sizes().await;
        let sizes = sizes.map(|sizes| sizes.into_iter().collect::<HashMap<_, _>>());
        if let Err(error) = &sizes {
            tracing::warn!(%error, "the quarantine cannot be measured; operators are not told of lost records");
        }
        let expires = tls.and_then(TlsListener::certificate_expires);
        let certificate_expires_secs = expires.map(clock::unix_secs);
        let mut observations = vec![Observation { certificate_expires_secs, ..Observation::default() }];
        for (id, mapping) in mappings.iter() {
            let quarantine = sizes.as_ref().ok().map(|sizes| {
                // Resolved records are not lost, and make room.
                let size = sizes.get(id).copied().unwrap_or_default().open;
                let bytes_max = mapping.source.limits.quarantine_bytes_max;
                QuarantineUsage { records: size.records, bytes: size.bytes, bytes_max }
            });
            observations.push(Observation {
                repository: id.clone(),
                outage: served.store.activity.read(id, outage),
                quarantine,
                held_deletions: self.held_deletions(served, mapping).await,
                folder: served.deposit.folders.of(id),
                certificate_expires_secs: None,
            });
        }
        observations
    }

    /// The deletions that the mirror holds back; `None` if they cannot be read now.
    async fn held_deletions(&mut self, served: &ServedRepositories, mapping: &Mapping) -> Option<u64> {
        if mapping.harvest().is_none() {
            return Some(0);
        }
        let ended = served.mirror.runs.of(mapping.id()).ended;
        if let Some((after, held)) = self.held.get(mapping.id())
            && *after == ended
        {
            return Some(*held);
        }
        let status = repository_status(served.store.mirror.as_ref(), mapping.id()).await;
        let held = status.ok()?.formats.iter().map(|format| format.held_deletions).sum();
        self.held.insert(mapping.id().to_owned(), (ended, held));
        Some(held)
    }
}

/// The failures since the last success of a source.
fn outage(activity: &RepositoryActivity) -> Option<Outage> {
    let since_secs = datestamp::to_secs(activity.fails_since()?)?;
    let last = activity.failures().next()?;
    let last_secs = datestamp::to_secs(&last.at)?;
    Some(Outage { since_secs, last_secs, reason: last.reason.clone(), details: last.details.clone() })
}
