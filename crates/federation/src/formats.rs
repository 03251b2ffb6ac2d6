//! ListMetadataFormats without an identifier: the union of the formats of all members.

use crate::member_page::whole_response;
use crate::session::{
    Answered, Federation, PARALLEL_MAX, Session, of_member, out_of_time, request_to_member,
};
use futures::stream::{self, StreamExt as _};
use oaimend_mirror::harvest::read_formats;
use oaimend_oai::{ErrorCode, Request, escape};
use oaimend_repository::{Failure, RepositoryRequest};
use oaimend_store::ListedFormat;
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

/// Longest time for the formats of all members.
const TIME_MAX: Duration = Duration::from_secs(45);
/// Maximum number of bytes of the formats of a member.
const FORMATS_BYTES_MAX: usize = 4 << 20;

impl Federation {
    /// Asks the members whose formats are not known, or old.
    ///
    /// # Errors
    ///
    /// A member that has never answered fails, or does not answer in time.
    async fn refresh_formats(&self, like: &RepositoryRequest) -> Result<(), Failure> {
        let state = &self.services.state;
        let now_secs = self.now_secs();
        let mut deadline = self.services.clock.deadline(TIME_MAX);
        let old = self.members().iter().filter(|member| !state.has_fresh_formats(&member.id, now_secs));
        let ask = |id: String| async move {
            let _turn = state.turn_at(&id).await;
            // Another request may have asked it meanwhile.
            if state.has_fresh_formats(&id, now_secs) {
                return (id, Ok(()));
            }
            let formats = self.formats_of(&id, like).await;
            let noted = formats.map(|formats| state.note_formats(&id, now_secs, formats));
            (id, noted)
        };
        let responses = stream::iter(old.map(|member| member.id.clone()).collect::<Vec<_>>()).map(ask);
        let mut responses = pin!(responses.buffer_unordered(PARALLEL_MAX));
        loop {
            let next = tokio::select! {
                next = responses.next() => next,
                () = &mut deadline => return Err(out_of_time()),
            };
            match next {
                Some((id, Err(failure))) if state.formats(&id).is_none() => return Err(failure),
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    async fn formats_of(&self, id: &str, like: &RepositoryRequest) -> Result<Vec<ListedFormat>, Failure> {
        let repository = self.open(id).await?;
        let request = request_to_member(like, Request::list_metadata_formats(None));
        let body = whole_response(&*repository, request, FORMATS_BYTES_MAX).await;
        Ok(read_formats(&body.map_err(|failure| of_member(id, failure))?))
    }
}

impl Session {
    /// The formats of all members. Of a prefix that several have, the first in the order of the index counts.
    pub(crate) async fn formats(&mut self) -> Answered {
        let federation = self.federation.clone();
        federation.refresh_formats(&self.request).await?;
        let now_secs = federation.now_secs();
        let (mut seen, mut content) = (BTreeSet::new(), String::new());
        let formats =
            federation.members().iter().flat_map(|member| federation.services.state.formats(&member.id));
        for format in formats.flatten() {
            if seen.insert(format.prefix.clone()) {
                content.push_str("    <metadataFormat>");
                let fields = [
                    ("metadataPrefix", &format.prefix),
                    ("schema", &format.schema),
                    ("metadataNamespace", &format.namespace),
                ];
                for (name, value) in fields {
                    content.push_str(&format!("<{name}>"));
                    escape(value, &mut content);
                    content.push_str(&format!("</{name}>"));
                }
                content.push_str("</metadataFormat>\n");
            }
        }
        if seen.is_empty() {
            let text = "no repository of this federation has a format";
            return self.send_error(now_secs, ErrorCode::NoMetadataFormats, text).await;
        }
        self.send_own(now_secs, &content, seen.len() as u64).await
    }
}
