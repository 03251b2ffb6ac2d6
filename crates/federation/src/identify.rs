//! Identify: the weakest values of all members.
//!
//! A member that has never answered counts with the weakest value of each field, so the response is never wrong, and it
//! is there before all members are.

use crate::facts::Needed;
use crate::session::{Answered, Session};
use oaimend_mirror::view::identify::{description_of, fallback_email};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::from_secs;
use oaimend_oai::escape;

/// The values of `deletedRecord`, the weakest first.
const DELETED_RECORD: [&str; 3] = ["no", "transient", "persistent"];
/// Maximum number of addresses of members.
const EMAILS_MAX: usize = 20;

impl Session {
    pub(crate) async fn identify(&mut self) -> Answered {
        self.federation.refresh_facts(&self.request, Needed::Fresh).await;
        let federation = self.federation.clone();
        let now_secs = federation.now_secs();
        let state = &federation.services.state;
        let (mut deleted, mut earliest_secs, mut emails) = (DELETED_RECORD.len() - 1, now_secs, Vec::new());
        for member in federation.members() {
            let facts = state.facts(&member.id);
            let rank = facts
                .as_ref()
                .and_then(|facts| DELETED_RECORD.iter().position(|name| *name == facts.deleted_record));
            deleted = deleted.min(rank.unwrap_or(0));
            let earliest = facts.as_ref().and_then(|facts| facts.earliest_secs);
            earliest_secs = earliest_secs.min(earliest.unwrap_or(UnixSecs(0)));
            for email in facts.into_iter().flat_map(|facts| facts.admin_emails) {
                if emails.len() < EMAILS_MAX && !emails.contains(&email) {
                    emails.push(email);
                }
            }
        }
        let settings = &federation.settings;
        if !settings.admin_emails.is_empty() {
            emails.clone_from(&settings.admin_emails);
        }
        if emails.is_empty() {
            emails.push(fallback_email(&self.request.echo.base_url));
        }
        let granularity = federation.granularity();
        let mut content = String::new();
        let mut field = |name: &str, value: &str| {
            content.push_str(&format!("    <{name}>"));
            escape(value, &mut content);
            content.push_str(&format!("</{name}>\n"));
        };
        field("repositoryName", &settings.repository_name);
        field("baseURL", &self.request.echo.base_url);
        field("protocolVersion", "2.0");
        emails.iter().for_each(|email| field("adminEmail", email));
        field("earliestDatestamp", &from_secs(earliest_secs, granularity));
        field("deletedRecord", DELETED_RECORD.get(deleted).copied().unwrap_or("no"));
        field("granularity", granularity.name());
        if let Some(description) = &settings.description {
            content.push_str(&format!("    {}\n", description_of(description)));
        }
        self.send_own(now_secs, &content, 1).await
    }
}
