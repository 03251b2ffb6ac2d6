//! The state of the server, and the plot of the plan.

use super::page::{html, site};
use crate::serve::oai::live_requests::LiveRequests;
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::records::record::with_policies;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use oaimend_mirror::{PlannedHarvests, PlannedRepository, RepositoryFacts, plan_chart};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::html::{HarvestRow, HarvestState, RequestRow, SourceRow, StatusPage};
use oaimend_pages::texts::plain;
use std::time::{Duration, SystemTime};

/// The page with the requests in flight, the limits of sources, and the queue of harvests.
pub(crate) fn status(
    served: &ServedRepositories,
    live_requests: &LiveRequests,
    gateway: &Gateway,
) -> Response {
    let site = &site(gateway);
    let (requests, sources, harvests) =
        (requests(live_requests, served.clock.now()), sources(served), harvests(served));
    html(200, StatusPage { site, requests: &requests, sources: &sources, harvests: &harvests }.render())
}

fn requests(live_requests: &LiveRequests, now: SystemTime) -> Vec<RequestRow> {
    let rows = live_requests.all().into_iter().map(|request| RequestRow {
        secs: now.duration_since(request.began).unwrap_or_default().as_secs(),
        repository: request.repository,
        query: request.query,
        class: request.class,
    });
    rows.collect()
}

fn sources(served: &ServedRepositories) -> Vec<SourceRow> {
    let now = served.clock.now();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mappings = served.repositories.all();
    let rows = mappings.keys().filter_map(|id| {
        let usage = served.sources.limit_usage(id, now)?;
        Some(SourceRow {
            repository: id.clone(),
            lists_in_flight: (usage.lists_in_flight, usage.lists_max),
            waiting: usage.waiting,
            gap_millis: millis(usage.gap),
            wait_millis: millis(usage.wait),
            circuit_open_secs: served.sources.circuit_open_secs(id, now),
        })
    });
    rows.collect()
}

/// The mirrored repositories: running harvests first, then requested ones, then the others by their time.
fn harvests(served: &ServedRepositories) -> Vec<HarvestRow> {
    let mappings = served.repositories.all();
    let mirrored = mappings.values().filter(|mapping| mapping.harvest().is_some());
    let mut rows: Vec<_> = mirrored
        .map(|mapping| {
            let runs = served.mirror.runs.of(mapping.id());
            let due_secs = runs.next_due_secs;
            let (rank, state) = match (runs.running, runs.waiting) {
                (Some(running), _) => {
                    let status = running.status.unwrap_or_default();
                    let began_at = from_secs(running.began_secs, Granularity::Second);
                    let (prefix, records, total) = (status.prefix, status.records, status.total);
                    (UnixSecs::MIN, HarvestState::Running { began_at, prefix, records, total })
                }
                (None, Some(_)) => (UnixSecs(i64::MIN + 1), HarvestState::Requested),
                (None, None) => match due_secs {
                    Some(secs) => (secs, HarvestState::Due(from_secs(secs, Granularity::Second))),
                    None => (UnixSecs::MAX, HarvestState::Unknown),
                },
            };
            (rank, HarvestRow { repository: mapping.id().to_owned(), state })
        })
        .collect();
    rows.sort_by_key(|(rank, _)| *rank);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The plot of the plan as SVG.
pub(crate) async fn chart(served: &ServedRepositories) -> Response {
    let policy = served.mirror.policy();
    let mut repositories = Vec::new();
    for mapping in served.repositories.all().values() {
        let Some(settings) = mapping.harvest() else { continue };
        match RepositoryFacts::read(served.store.mirror.as_ref(), mapping.id()).await {
            Ok(facts) => {
                repositories.push(PlannedRepository::new(mapping.id(), facts, settings, policy.intervals));
            }
            Err(error) => return unavailable(&error.to_string()),
        }
    }
    if repositories.is_empty() {
        return Response::text(404, plain::NO_PLAN);
    }
    let policy = (*policy).clone();
    // Each plan is a search over all repositories.
    let drawn = tokio::task::spawn_blocking(move || {
        let planned = PlannedHarvests::new(repositories, policy).map_err(|error| error.to_string())?;
        plan_chart(&planned).map_err(|error| error.to_string())
    });
    match drawn.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(svg) => {
            let page = Response::new(200, "image/svg+xml", svg);
            with_policies(page.with("Cache-Control", "no-store".to_owned()))
        }
        Err(problem) => unavailable(&problem),
    }
}

fn unavailable(problem: &str) -> Response {
    Response::text(500, &plain::plan_failed(problem))
}
