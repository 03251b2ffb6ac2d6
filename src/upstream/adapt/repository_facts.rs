//! What an answer teaches of its repository, and what the engine is told of it: granularity, the lowest
//! datestamp, and setSpecs that look escaped.

use crate::oai::datestamp::Granularity;
use crate::oai::{Argument, Verb, set_spec};
use crate::repair::RepositoryFacts;
use crate::store::{ProfileDates, ProfileUpdate, SetUsage};
use crate::upstream::page::buffer::PageBuffer;
use crate::upstream::session::list_session::ListSession;
use quick_xml::events::Event;
use std::collections::BTreeMap;

impl ListSession<'_> {
    /// What the engine is told.
    pub(crate) fn known_of_the_repository(&self) -> RepositoryFacts {
        let mapping = &self.job.mapping;
        let ProfileDates { granularity, earliest, oldest_seen } =
            self.job.store.profiles.dates(&mapping.source());
        // What Identify said before must not outlast what it says now.
        let announced = granularity.filter(|_| self.job.request.verb() != Verb::Identify);
        let from = self.asked.argument(Argument::From).map(str::to_owned);
        // A list is read from its beginning on but where it is gone on with.
        let chain = self.chain.as_ref().filter(|_| self.asked.is_resumption());
        let from = from.or_else(|| chain?.from());
        let earliest = match (earliest, &oldest_seen) {
            (Some(earliest), Some(seen)) if *seen < earliest => Some(seen.clone()),
            (earliest, _) => earliest,
        };
        RepositoryFacts {
            granularity: mapping.quirks.granularity.or(announced),
            lowest_datestamp: from.or(earliest),
            oldest_seen,
        }
    }

    /// Says to the operator what of Identify stays as it is.
    pub(crate) fn tell_lacks(&self, lacks: &[&'static str]) {
        if !lacks.is_empty() {
            let (repo, elements) = (&self.job.mapping.id, lacks.join(", "));
            tracing::warn!(
                repo,
                elements,
                "Identify lacks what the schema demands and leaves so; set identify.* in the mapping"
            );
        }
    }

    /// Notes what was made of a page so far, before it leaves. How old its oldest record is
    /// is noted once, at its end.
    pub(crate) async fn take_note(&mut self, pieces: &mut PageBuffer, ended: bool) {
        let mut dates = match self.job.request.verb() {
            Verb::Identify => dates_of(&pieces.made.bytes()),
            _ => ProfileDates::default(),
        };
        if let Some(granularity) = dates.granularity {
            self.note_granularity(granularity).await;
        }
        if ended && !pieces.oldest.is_empty() {
            dates.oldest_seen = String::from_utf8(std::mem::take(&mut pieces.oldest)).ok();
        }
        let news = ProfileUpdate { dates, sets: std::mem::take(&mut pieces.sets) };
        if news == ProfileUpdate::default() {
            return;
        }
        let collisions = self.job.store.profiles.update(&self.job.mapping.source(), news).await;
        self.account.set_collisions += collisions.len() as u64;
        for set in collisions {
            tracing::warn!(
                repo = self.job.mapping.id,
                set,
                means = set_spec::unescape(&set),
                "two sets of the source have one name now; who asks for it gets the one that the source calls so"
            );
        }
    }
}

/// What Identify says of datestamps.
fn dates_of(response: &[u8]) -> ProfileDates {
    let mut dates = ProfileDates::default();
    let text = String::from_utf8_lossy(response);
    let mut reader = quick_xml::Reader::from_str(&text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) if tag.local_name().as_ref() == "earliestDatestamp" => {
                dates.earliest = text_behind(&text, reader.buffer_position());
            }
            Ok(Event::Start(tag)) if tag.local_name().as_ref() == "granularity" => {
                let name = text_behind(&text, reader.buffer_position());
                dates.granularity = name.and_then(|name| Granularity::from_name(&name));
                return dates;
            }
            Ok(Event::Eof) | Err(_) => return dates,
            Ok(_) => {}
        }
    }
}

fn text_behind(text: &str, at: u64) -> Option<String> {
    let rest = text.get(usize::try_from(at).ok()?..)?;
    Some(rest.get(..rest.find('<')?)?.trim().to_owned())
}

/// The setSpecs of an item that look escaped. As often as one stands in what was `written` into
/// the item it stands for another; beyond that the source calls a set so.
pub(crate) fn sets_of(item: &[u8], written: &[Vec<u8>]) -> BTreeMap<String, SetUsage> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let text = String::from_utf8_lossy(item);
    let mut reader = quick_xml::Reader::from_str(&text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) if tag.local_name().as_ref() == "setSpec" => {
                let name = text_behind(&text, reader.buffer_position());
                if let Some(name) = name.filter(|name| set_spec::unescape(name).is_some()) {
                    *counts.entry(name).or_default() += 1;
                }
            }
            // Behind these stands what is no header any more.
            Ok(Event::End(tag)) if tag.local_name().as_ref() == "header" => break,
            Ok(Event::Start(tag)) if matches!(tag.local_name().as_ref(), "setName" | "metadata") => break,
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let seen = counts.into_iter().map(|(name, count)| {
        // As it stands in a setSpec, or with the element that was moved.
        let element = format!(">{name}<");
        let in_text = |text: &Vec<u8>| match text == name.as_bytes() {
            true => 1,
            false => memchr::memmem::find_iter(text, &element).count(),
        };
        let ours: usize = written.iter().map(in_text).sum();
        (name, SetUsage { escaped: ours > 0, legal: count > ours })
    });
    seen.collect()
}
