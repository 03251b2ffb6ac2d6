//! The address of the administrator of a source, from its response to Identify.

use crate::config::{Mapping, read_mailbox};
use crate::serve::served::ServedRepositories;
use oaimend_mirror::view::identify::StoredIdentify;
use oaimend_oai::Request;
use oaimend_repository::{Event, HarvesterTraits, Repository as _, RepositoryRequest};
use oaimend_upstream::LiveRepository;
use oaimend_upstream::settings::SourceMapping;
use std::sync::Arc;

/// Longest response to Identify that is read, in bytes.
const IDENTIFY_BYTES_MAX: usize = 1 << 20;

/// The first `adminEmail` of the source that is one mail address.
///
/// # Errors
///
/// The source does not respond, or has no such address.
pub(super) async fn admin_email(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
) -> Result<String, String> {
    let client = served.sources.client_for(&mapping.source).map_err(|failure| failure.details)?;
    // An address of the configuration is not the provider's.
    let mut unmapped = SourceMapping::clone(&mapping.source);
    unmapped.identify.admin_email = None;
    let (store, clock) = (served.store.clone(), Arc::clone(&served.clock));
    let source = LiveRepository { mapping: Arc::new(unmapped), client, store, clock };
    let request = Request::identify();
    let echo = Arc::new(request.to_echo(mapping.source.base_url.as_str()));
    let via = served.via.to_str().unwrap_or_default().to_owned();
    let mut events = source.answer(RepositoryRequest {
        request,
        echo,
        via,
        harvester: HarvesterTraits::default(),
        in_one_piece: false,
        reports_records: false,
    });
    let mut body = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Event::Body(piece) if body.len() + piece.len() > IDENTIFY_BYTES_MAX => break,
            Event::Body(piece) => body.extend_from_slice(&piece),
            Event::Failed(failure, _) => return Err(failure.details),
            Event::Head(_) | Event::Records(_) | Event::Quarantined(_) | Event::End(_) => {}
        }
    }
    let identify = StoredIdentify::read(&String::from_utf8_lossy(&body));
    let emails = identify.map(|identify| identify.admin_emails()).unwrap_or_default();
    let address = |text: &String| read_mailbox(text.trim().trim_start_matches("mailto:")).ok();
    let no_address = || "the source names no adminEmail; set report_to to an address".to_owned();
    emails.iter().find_map(address).ok_or_else(no_address)
}
