//! The feed of changes: pages of JSON, and Server-Sent Events (WHATWG HTML, section 9.2).

use super::listeners::ListenerPlace;
use super::refusal::Refusal;
use super::source::store_state;
use super::store_watch::{INTERVAL, Look, StoreNews};
use crate::serve::clients::client_class::ClientNetwork;
use crate::serve::context::ServerContext;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use http::{HeaderMap, header};
use oaimend_base::clock;
use oaimend_dumps::{Change, FeedStart, Place, Position, StaleReason, StoreState, read_changes};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_store::MirrorError;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use url::form_urlencoded;

/// Maximum number of changes of a page, and of events that a listener has in memory.
const PAGE_CHANGES_MAX: usize = 1_000;
/// The time without an event after which a comment keeps the connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a listener is served. It connects again, and continues where it was.
const LISTENING_MAX: Duration = Duration::from_secs(3_600);
/// When a listener connects again, in milliseconds.
const RETRY_MILLIS: u64 = 5_000;
/// The value of `since` for changes from now on.
const NOW: &str = "now";
const EVENT_STREAM: &str = "text/event-stream";
/// The header with which a listener continues.
const LAST_EVENT_ID: &str = "Last-Event-ID";

/// A request for changes.
pub(crate) struct ChangesRequest {
    /// The query of its URL.
    pub(crate) query: String,
    pub(crate) label: Option<&'static str>,
}

/// The response to a client.
pub(crate) async fn answer_changes(
    context: &Arc<ServerContext>,
    request: &ChangesRequest,
    client: Option<ClientNetwork>,
    headers: &HeaderMap,
) -> Response {
    let response = match Feed::read(&context.served, &request.query, headers).await {
        Ok(feed) if is_listener(headers) => listen(context, feed, client),
        Ok(feed) => page(feed).await,
        Err(refusal) => Err(refusal),
    };
    let response = response.unwrap_or_else(|refusal| refusal.response());
    response.with("Vary", "Accept".to_owned())
}

fn is_listener(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|accepted| accepted.split(';').next().unwrap_or_default().trim() == EVENT_STREAM)
}

/// The changes that a client reads, and where it is.
struct Feed {
    served: Arc<ServedRepositories>,
    /// The id of the only repository; `None`: all.
    repository: Option<String>,
    position: Position,
    /// The state of the store up to which it reads.
    state: StoreState,
}

impl Feed {
    async fn read(
        served: &Arc<ServedRepositories>,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Self, Refusal> {
        let (mut since, mut repository) = (None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let slot = match &*name {
                "since" => &mut since,
                "repository" => &mut repository,
                _ => {
                    let name = name.escape_debug();
                    let text = format!("there is no parameter \"{name}\"; expected since and repository");
                    return Err(Refusal::Illegal(text));
                }
            };
            if slot.replace(value.into_owned()).is_some() {
                return Err(Refusal::Illegal(format!("the parameter {name} comes twice")));
            }
        }
        if let Some(last) =
            headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty())
        {
            since = Some(last.to_owned());
        }
        let state = store_state(served).await?;
        let at = |secs, place| Position { store: state.store, epoch: state.epoch, secs, place };
        let position = match since.as_deref() {
            None => at(UnixSecs(0), Place::End),
            Some(NOW) => at(state.closed_secs, Place::End),
            Some(text) => text.parse().map_err(|_| {
                let text = text.escape_debug();
                Refusal::Illegal(format!(
                    "{text} is no position; expected one of a dump or of this feed, or now"
                ))
            })?,
        };
        let feed = Self { served: Arc::clone(served), repository, position, state };
        feed.starts()?;
        position.check(&state, None)?;
        Ok(feed)
    }

    /// The repositories that are read.
    fn starts(&self) -> Result<Vec<FeedStart>, Refusal> {
        let mappings = self.served.repositories.all();
        let is_wanted = |id: &str| self.repository.as_deref().is_none_or(|wanted| wanted == id);
        let starts: Vec<FeedStart> = mappings
            .iter()
            .filter(|(id, _)| is_wanted(id))
            .filter_map(|(id, mapping)| {
                let prefixes = mapping.mirror.as_ref()?.prefixes.clone();
                Some(FeedStart { repository: id.clone(), prefixes })
            })
            .collect();
        match &self.repository {
            Some(id) if starts.is_empty() => {
                let id = id.escape_debug();
                Err(Refusal::Unknown(format!("there is no mirrored or local repository {id}")))
            }
            _ => Ok(starts),
        }
    }

    /// The next changes, and whether there are more. The feed is after them then. A repository that was removed meanwhile is
    /// not among them, but its removal makes the position stale.
    async fn next(&mut self) -> Result<(Vec<Change>, bool), Refusal> {
        self.position.check(&self.state, None)?;
        let StoreState { closed_secs, store, epoch } = self.state;
        let starts = self.starts()?;
        let after = (&self.position, closed_secs);
        let page = read_changes(self.served.store.mirror.as_ref(), &starts, after, PAGE_CHANGES_MAX).await?;
        let (secs, place) = page.next;
        self.position = Position { store, epoch, secs, place };
        Ok((page.changes, page.has_more))
    }

    /// The position after a change.
    fn after(&self, change: &Change) -> Position {
        Position { secs: change.stamp_secs, place: change.place, ..self.position }
    }
}

async fn page(mut feed: Feed) -> Result<Response, Refusal> {
    let (changes, has_more) = feed.next().await?;
    if store_state(&feed.served).await?.epoch != feed.state.epoch {
        return Err(StaleReason::Forgotten.into());
    }
    let mut next = form_urlencoded::Serializer::new(String::new());
    next.append_pair("since", &feed.position.to_string());
    next.extend_pairs(feed.repository.iter().map(|id| ("repository", id)));
    let page = json!({
        "changes": changes.iter().map(change_json).collect::<Vec<_>>(),
        "position": feed.position.to_string(),
        "has_more": has_more,
        "next": format!("{}/_changes?{}", feed.served.public_url, next.finish()),
    });
    Ok(Response::json(200, &page).with("Cache-Control", "no-store".to_owned()).compressible())
}

fn change_json(change: &Change) -> Value {
    json!({
        "identifier": change.identifier,
        "repository": change.repository,
        "format": change.format,
        "stamp": from_secs(change.stamp_secs, Granularity::Second),
        "deleted": change.deleted,
    })
}

/// Begins a stream of events.
fn listen(
    context: &Arc<ServerContext>,
    feed: Feed,
    client: Option<ClientNetwork>,
) -> Result<Response, Refusal> {
    let place = context.served.dumps.listeners.take_place(client)?;
    let served = Arc::clone(&context.served);
    let news = context.served.dumps.watch.subscribe(move || Look::after_pause(Arc::clone(&served)));
    let listener = Listener {
        context: Arc::clone(context),
        feed,
        news,
        began: clock::uptime(),
        sent: clock::uptime(),
        has_more: true,
        has_begun: false,
        has_ended: false,
        place,
    };
    let events = stream::unfold(listener, Listener::next).map(Ok);
    let page = Response::download(EVENT_STREAM, events.boxed());
    // A reverse proxy would collect the events.
    Ok(page.with("Cache-Control", "no-store".to_owned()).with("X-Accel-Buffering", "no".to_owned()))
}

/// A client that follows the feed. It has one page of events in memory, and reads the next one when the client has taken it.
struct Listener {
    context: Arc<ServerContext>,
    feed: Feed,
    /// Wakes it when there may be more changes.
    news: watch::Receiver<StoreNews>,
    began: Duration,
    /// The time of the last event or comment.
    sent: Duration,
    /// Whether more changes are known already.
    has_more: bool,
    has_begun: bool,
    has_ended: bool,
    place: ListenerPlace,
}

impl Listener {
    /// The next events as text; `None` at the end.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if !self.has_begun {
            self.has_begun = true;
            let start = format!("retry: {RETRY_MILLIS}\nid: {}\n\n", self.feed.position);
            return Some((start.into(), self));
        }
        while !self.has_ended && !self.is_over() {
            let text = match self.read().await {
                Ok(changes) => self.events(&changes),
                Err(refusal) => {
                    self.has_ended = true;
                    ended_event(&refusal)
                }
            };
            if !text.is_empty() {
                self.sent = clock::uptime();
                return Some((text.into(), self));
            }
        }
        None
    }

    /// The next changes; none if nothing has changed for an interval.
    async fn read(&mut self) -> Result<Vec<Change>, Refusal> {
        if !self.has_more && !self.has_news().await? {
            return Ok(Vec::new());
        }
        let (changes, has_more) = self.feed.next().await?;
        self.has_more = has_more;
        Ok(changes)
    }

    /// Waits for a change of the store, at most for an interval.
    async fn has_news(&mut self) -> Result<bool, Refusal> {
        let pause = self.context.served.clock.pause(INTERVAL);
        tokio::select! {
            changed = self.news.changed() => {
                changed.map_err(|error| MirrorError::Stopped(error.to_string()))?;
            }
            () = pause => return Ok(false),
        }
        let Some(state) = self.news.borrow_and_update().clone().transpose()? else { return Ok(false) };
        // The listener has read after this look already. Its changes are known then.
        if self.feed.position.check(&state, None) == Err(StaleReason::Future) {
            return Ok(false);
        }
        self.feed.state = state;
        Ok(true)
    }

    fn is_over(&self) -> bool {
        self.context.lifecycle.is_draining()
            || self.place.is_replaced()
            || clock::uptime().saturating_sub(self.began) > LISTENING_MAX
    }

    /// The events of changes, or a comment if there was no event for a while. The last id is the position after all.
    fn events(&self, changes: &[Change]) -> String {
        let mut text = String::new();
        for change in changes {
            text.push_str(&format!("id: {}\ndata: {}\n\n", self.feed.after(change), change_json(change)));
        }
        if text.is_empty() && clock::uptime().saturating_sub(self.sent) >= HEARTBEAT {
            text = format!(": no change\nid: {}\n\n", self.feed.position);
        }
        text
    }
}

/// The last event of a stream that cannot continue. The next request gets the same as a response.
fn ended_event(refusal: &Refusal) -> String {
    let (status, detail, _) = refusal.parts();
    format!("event: end\ndata: {}\n\n", json!({ "status": status, "detail": detail }))
}
