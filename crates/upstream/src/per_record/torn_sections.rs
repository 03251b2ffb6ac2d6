//! Asks the source whether the records in a closed section are records of the list.
//!
//! `<![CDATA[ .. </record> <record> .. <![CDATA[ .. ]]>` is content, or the first section lost its end mark.
//! The engine reads it as content. Before the record is sent, the repair `torn-section` is tried on that
//! record alone. Its result is used if `GetRecord` returns each further record with the same bytes. So a
//! depositor cannot forge a record: whatever is delivered, the source returns for that identifier.

use crate::adapt::requester::Requester;
use crate::adapt::subrequest::{Item, SubResponse};
use crate::page::buffer::PageBuffer;
use crate::page::resume::Resumer;
use crate::per_record::refetch::{Refetched, fetch_record, is_allowed};
use crate::xml::text::unescape_text;
use oaimend_oai::{Request, Verb};
use oaimend_repair::{Ending, Outcome, RepairConfig, RepairId, Repairer};

/// Records in sections that the source is asked for, for one request of a harvester.
const REQUESTS_MAX: usize = 10;

/// The decisions for one request of a harvester.
#[derive(Debug, Default)]
pub(crate) struct TornSections {
    /// By the bytes of the record around the section: whether the section lost its end mark.
    decisions: Vec<(u64, bool)>,
    requests: usize,
}

impl TornSections {
    /// Splits each record with a section that lost its end mark, if the source confirms the records in it.
    pub(crate) async fn split_torn_records(
        &mut self,
        requester: &mut Requester<'_>,
        buffer: &mut PageBuffer,
        resumer: &Resumer,
    ) {
        let swallowing = buffer.take_swallowing();
        if swallowing.is_empty() || !may_split(requester) {
            return;
        }
        if requester.metadata_prefix.is_none() {
            return;
        }
        let head = resumer.head_with(buffer);
        let Some(end) = resumer.tags_with(buffer).map(|tags| tags.close_with(None)) else { return };
        let mut added = 0;
        for (index, offset) in swallowing {
            let index = index + added;
            let Some(item) = buffer.item(index).map(|item| item.into_owned().into_bytes()) else { continue };
            let Some(torn) = read_torn(requester, [&head, &item, &end]) else { continue };
            if buffer.hash_at(index) != torn.items.first().map(|item| item.hash) {
                continue;
            }
            let key = buffer.key(&item, b"");
            let known = self.decisions.iter().find(|(known, _)| *known == key).map(|(_, is_torn)| *is_torn);
            let is_torn = match known {
                Some(is_torn) => is_torn,
                None => self.confirm(requester, key, &torn).await,
            };
            if is_torn {
                added += torn.items.len() - 1;
                buffer.split_torn(index, offset, head.len(), torn.buffer);
            }
        }
    }

    /// Whether the source returns each record after the first one as it is there. Remembers the decision.
    async fn confirm(&mut self, requester: &mut Requester<'_>, key: u64, torn: &SubResponse) -> bool {
        let further = torn.items.get(1..).unwrap_or_default();
        if self.requests + further.len() > REQUESTS_MAX {
            return false;
        }
        let mut is_torn = true;
        for item in further {
            self.requests += 1;
            is_torn = is_at_source(requester, item).await;
            if !is_torn {
                break;
            }
        }
        self.decisions.push((key, is_torn));
        is_torn
    }
}

/// Whether the source may be asked. The description of a record's origin is a part of it here, and is
/// not the same in two responses.
fn may_split(requester: &Requester<'_>) -> bool {
    let mapping = &requester.context.mapping;
    mapping.quirks.refetch_broken_records
        && mapping.repairs.provenance.is_none()
        && !mapping.repairs.off.contains(RepairId::TornSection)
        && !requester.adapter.is_version_one()
        && requester.context.request.verb() == Verb::ListRecords
}

/// The records that an item contains if its sections lost their end marks. `page` are the head of a page, the
/// item, and the end of the page. `None` if these are not several whole records.
fn read_torn(requester: &Requester<'_>, page: [&[u8]; 3]) -> Option<SubResponse> {
    let mapping = &requester.context.mapping;
    let mut config = RepairConfig::default();
    config.limits = mapping.limits.repair.clone();
    config.off = mapping.repairs.off;
    config.enabled = [RepairId::TornSection].into_iter().collect();
    config.repository = requester.facts.clone();
    config.ending = Ending::Abort;
    let mut torn = SubResponse::new(requester.context);
    let mut repairer = Repairer::new(&config);
    for part in page {
        repairer.push(part, &mut torn);
    }
    let summary = repairer.finish(&mut torn);
    let is_whole = summary.outcome == Outcome::Repaired && summary.lost + summary.quarantined == 0;
    let is_list = torn.buffer.token.as_written().is_none() && !torn.is_too_long && torn.items.len() > 1;
    (is_whole && is_list).then_some(torn)
}

async fn is_at_source(requester: &mut Requester<'_>, item: &Item) -> bool {
    let (now, identifier) = (requester.now(), unescape_text(&item.identifier));
    if !is_allowed(requester) {
        return false;
    }
    let Some(prefix) = requester.metadata_prefix.clone() else { return false };
    let request = Request::get_record(&identifier, &prefix);
    let options = requester.options();
    match fetch_record(requester, &request, options).await {
        Refetched::Response(response) => {
            let is_two = response.version == Some("2.0");
            is_two
                && response
                    .record(&identifier)
                    .is_some_and(|found| lines(&found.bytes).eq(lines(&item.bytes)))
        }
        Refetched::Nothing => {
            requester.context.client.refetch_gate.note(now, false);
            false
        }
        Refetched::NotRequested => false,
    }
}

/// The lines of a record without their indentation, and without empty ones.
fn lines(record: &[u8]) -> impl Iterator<Item = &[u8]> {
    record.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}
