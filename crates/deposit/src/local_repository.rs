//! Writes the records of a local repository.

use crate::deposit::{Deposit, Payload, last_of_each};
use crate::dublin_core::{DUBLIN_CORE, crosswalk, dublin_core_of, written};
use crate::error::DepositError;
use crate::files::identifier_start;
use crate::metadata_check::{MetadataCheck, judge};
use crate::settings::{FormatSettings, LocalSettings};
use crate::write_terms::{Condition, EntityTag, WriteTerms};
use oaimend_mirror::view::ViewStores;
use oaimend_mirror::view::identify::fallback_email;
use oaimend_oai::{UnixSecs, escape, set_spec};
use oaimend_store::{
    CompleteHarvest, Document, Identifier, ListedFormat, ListedSet, MirrorError, PageCommit, Prefix,
    RecordStatus, RepositoryId, StoredRecord,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// A local repository with its settings. Cheap to make.
#[derive(Clone, Debug)]
pub struct LocalRepository {
    stores: ViewStores,
    settings: Arc<LocalSettings>,
    now_secs: UnixSecs,
    /// Held by the writer: two at once would not see the records of each other.
    turn: Arc<Mutex<()>>,
    /// Judges the metadata; `None`: none is judged.
    check: Option<Arc<dyn MetadataCheck>>,
}

/// What a write has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The stamp of the last change of the written records: the datestamp that lists have.
    pub stamp_secs: UnixSecs,
    /// The records that are new or changed. The others were stored already, and keep their stamps.
    pub changed: u64,
    /// The tag of the record, if it is one.
    pub tag: Option<EntityTag>,
    /// Whether the record was unknown before, if it is one.
    pub is_new: bool,
}

/// Records of one format that are stored together.
struct FormatWrite {
    prefix: String,
    deposits: Vec<Deposit>,
}

/// What the other formats of an item give for its `oai_dc`.
enum Others {
    /// There are none.
    None,
    /// No crosswalk reads them.
    Unreadable,
    Made(Payload),
}

impl LocalRepository {
    /// The repository at this time. `turn` is the same for all.
    pub fn new(
        stores: ViewStores,
        settings: Arc<LocalSettings>,
        now_secs: UnixSecs,
        turn: Arc<Mutex<()>>,
    ) -> Self {
        Self { stores, settings, now_secs, turn, check: None }
    }

    /// The same repository, which refuses metadata that is not valid.
    #[must_use]
    pub fn with_check(self, check: Arc<dyn MetadataCheck>) -> Self {
        Self { check: Some(check), ..self }
    }

    fn id(&self) -> RepositoryId<'_> {
        RepositoryId(&self.settings.id)
    }

    /// Stores what Identify and ListMetadataFormats say, if it has changed. A repository without records answers too.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written.
    pub async fn describe(&self) -> Result<(), MirrorError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let store = &self.stores.store;
        let identify = self.identify();
        let stored = store.document(self.id(), Document::Identify).await?;
        if stored.is_none_or(|stored| stored != identify.as_bytes()) {
            store.save_document(self.id(), Document::Identify, identify.into()).await?;
        }
        let mut catalog = store.catalog(self.id()).await?;
        let before = catalog.clone();
        let named = |(set_spec, name): (&String, &String)| ListedSet {
            set_spec: set_spec.clone(),
            name: name.clone(),
        };
        catalog.headers_are_whole = true;
        catalog.sets = self.settings.set_names.iter().map(named).collect();
        for (prefix, format) in &self.settings.formats {
            // The settings correct what a first record has said.
            match catalog.formats.iter_mut().find(|listed| listed.prefix == *prefix) {
                Some(listed) => *listed = format.listed_as(prefix),
                None => catalog.formats.push(format.listed_as(prefix)),
            }
        }
        // A repository has a format at least, also before its first record.
        if (self.settings.dc_required || catalog.formats.is_empty())
            && catalog.formats.iter().all(|format| format.prefix != DUBLIN_CORE)
            && let Some(crosswalk) = crosswalk()
        {
            let (prefix, schema, namespace) = (crosswalk.prefix, crosswalk.schema, crosswalk.namespace);
            catalog.formats.insert(0, ListedFormat { prefix, schema, namespace });
        }
        if catalog != before {
            store.save_catalog(self.id(), catalog.clone()).await?;
        }
        let mut unlisted = Vec::new();
        for format in catalog.formats {
            if store.progress(self.id(), Prefix(&format.prefix)).await?.last_complete.is_none() {
                unlisted.push(FormatWrite { prefix: format.prefix, deposits: Vec::new() });
            }
        }
        if unlisted.is_empty() {
            return Ok(());
        }
        self.commit(unlisted, turn).await.map(drop)
    }

    fn identify(&self) -> String {
        let mut xml = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><Identify>".to_owned();
        let mut field = |name: &str, text: &str| {
            xml.push_str(&format!("<{name}>"));
            escape(text, &mut xml);
            xml.push_str(&format!("</{name}>"));
        };
        field("repositoryName", &self.settings.repository_name);
        match self.settings.admin_emails.as_slice() {
            [] => field("adminEmail", &fallback_email(&self.settings.base_url)),
            emails => emails.iter().for_each(|email| field("adminEmail", email)),
        }
        xml.push_str("</Identify></OAI-PMH>");
        xml
    }

    /// A new identifier: `oai:`, the domain of the base URL, the name of the repository, and 64 random bits.
    ///
    /// # Errors
    ///
    /// The operating system has no random bytes.
    pub fn new_identifier(&self) -> Result<String, DepositError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| MirrorError::Stopped(format!("there are no random bytes: {error}")))?;
        Ok(format!("{}{}", identifier_start(&self.settings.base_url), hex::encode(random)))
    }

    /// The stored record, deleted or not.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn record(&self, prefix: &str, identifier: &str) -> Result<Option<StoredRecord>, MirrorError> {
        self.stores.store.record(self.id(), Prefix(prefix), Identifier(identifier)).await
    }

    /// The stored record; `None` also if it is damaged: only a writer can replace it, so it must not be in the way of one.
    async fn readable(&self, prefix: &str, identifier: &str) -> Result<Option<StoredRecord>, MirrorError> {
        match self.record(prefix, identifier).await {
            Err(MirrorError::Damaged) => {
                // The store then knows which records a commit restores.
                self.stores.store.verify_suspected(self.id()).await?;
                Ok(None)
            }
            record => record,
        }
    }

    /// Stores records in one format, all or none. If two have one identifier, the last one counts.
    ///
    /// # Errors
    ///
    /// The writer has no right to a record; a record is not valid, does not fit the format, lacks `oai_dc`, or is not the
    /// expected one; or the store fails.
    pub async fn put(
        &self,
        prefix: &str,
        deposits: Vec<Deposit>,
        terms: WriteTerms<'_>,
    ) -> Result<Stored, DepositError> {
        if let Some(check) = &self.check {
            judge(check.as_ref(), &deposits).await?;
        }
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let deposits = self.with_sets_of_deletions(prefix, last_of_each(deposits)).await?;
        for deposit in &deposits {
            self.check_rights(&deposit.identifier, Some(&deposit.set_specs), terms).await?;
        }
        self.check_owners(&deposits).await?;
        if *terms.condition != Condition::None {
            for deposit in &deposits {
                let stored = self.readable(prefix, &deposit.identifier).await?;
                if !terms.condition.holds(stored.as_ref()) {
                    return Err(DepositError::Changed(deposit.identifier.clone()));
                }
            }
        }
        if prefix == DUBLIN_CORE {
            for deposit in deposits.iter().filter(|deposit| deposit.payload.is_none()) {
                self.check_common(&deposit.identifier).await?;
            }
        }
        let format = self.format_of(prefix, &deposits).await?;
        let mut writes = Vec::new();
        if self.settings.dc_required && prefix != DUBLIN_CORE {
            let deposits = self.dublin_core(&format, &deposits).await?;
            // Before the format: after a failure in between, no item is without it.
            writes.push(FormatWrite { prefix: DUBLIN_CORE.to_owned(), deposits });
        }
        let single = match deposits.as_slice() {
            [deposit] => Some(self.readable(prefix, &deposit.identifier).await?),
            _ => None,
        };
        writes.push(FormatWrite { prefix: prefix.to_owned(), deposits });
        writes.retain(|write| !write.deposits.is_empty());
        // After all checks, so that a record that is refused leaves no format.
        self.list_format(format).await?;
        let mut stored = self.commit(writes, turn).await?;
        if let Some(before) = single {
            stored.is_new = before.is_none_or(|before| before.status == RecordStatus::Deleted);
        }
        Ok(stored)
    }

    /// The records, with deletions in the sets that their records were in: those who harvest a set learn of a deletion from
    /// its list.
    async fn with_sets_of_deletions(
        &self,
        prefix: &str,
        deposits: Vec<Deposit>,
    ) -> Result<Vec<Deposit>, MirrorError> {
        let mut kept = Vec::with_capacity(deposits.len());
        for mut deposit in deposits {
            if deposit.payload.is_none()
                && let Some(stored) = self.readable(prefix, &deposit.identifier).await?
            {
                let others = stored.set_specs.iter().cloned();
                let missing: Vec<String> = others.filter(|set| !deposit.set_specs.contains(set)).collect();
                deposit.set_specs.extend(missing);
            }
            kept.push(deposit);
        }
        Ok(kept)
    }

    /// Deletes an item in one format, or in all. The deleted records stay in the lists.
    ///
    /// # Errors
    ///
    /// There is no such live record, it is not the expected one, or others need it; or the store fails.
    pub async fn delete(
        &self,
        prefix: Option<&str>,
        identifier: &str,
        terms: WriteTerms<'_>,
    ) -> Result<Stored, DepositError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        self.check_rights(identifier, None, terms).await?;
        let live = self.live_formats(identifier).await?;
        let chosen: Vec<&String> =
            live.iter().filter(|live| prefix.is_none_or(|prefix| prefix == *live)).collect();
        if chosen.is_empty() {
            return Err(DepositError::Unknown(identifier.to_owned()));
        }
        if prefix == Some(DUBLIN_CORE) {
            self.check_common(identifier).await?;
        }
        let is_one_format = prefix.is_some();
        let mut writes = Vec::new();
        for prefix in chosen {
            let stored = self.readable(prefix, identifier).await?;
            if !terms.condition.holds(stored.as_ref()) {
                return Err(DepositError::Changed(identifier.to_owned()));
            }
            // The sets of a damaged record are unknown.
            let set_specs = stored.map(|stored| stored.set_specs.to_vec()).unwrap_or_default();
            let deposit = Deposit { set_specs, ..Deposit::deleted(identifier) };
            if self.settings.dc_required && is_one_format && prefix != DUBLIN_CORE && live.len() > 1 {
                let format = self.format_of(prefix, &[]).await?;
                let deposits = self.dublin_core(&format, std::slice::from_ref(&deposit)).await?;
                writes.push(FormatWrite { prefix: DUBLIN_CORE.to_owned(), deposits });
            }
            writes.push(FormatWrite { prefix: prefix.clone(), deposits: vec![deposit] });
        }
        writes.retain(|write| !write.deposits.is_empty());
        Ok(Stored { tag: None, ..self.commit(writes, turn).await? })
    }

    /// Gives all formats of an item these sets.
    ///
    /// # Errors
    ///
    /// There is no such item, a setSpec is not legal, or the store fails.
    pub async fn set_sets(
        &self,
        prefix: &str,
        identifier: &str,
        set_specs: &[String],
        terms: WriteTerms<'_>,
    ) -> Result<Stored, DepositError> {
        let checked = Deposit::new(identifier, set_specs, None)?;
        let turn = Arc::clone(&self.turn).lock_owned().await;
        self.check_rights(identifier, Some(&checked.set_specs), terms).await?;
        let stored = self.record(prefix, identifier).await?;
        if stored.as_ref().is_none_or(|stored| stored.status == RecordStatus::Deleted) {
            return Err(DepositError::Unknown(identifier.to_owned()));
        }
        if !terms.condition.holds(stored.as_ref()) {
            return Err(DepositError::Changed(identifier.to_owned()));
        }
        let mut writes = Vec::new();
        for prefix in self.live_formats(identifier).await? {
            let Some(stored) = self.record(&prefix, identifier).await? else { continue };
            let harvested =
                || format!("{identifier} was harvested in {prefix}; write it whole by PUT with its sets");
            let deposit = written(&stored).ok_or_else(|| DepositError::Unfit(harvested()))?;
            let deposit = Deposit { set_specs: checked.set_specs.clone(), ..deposit };
            writes.push(FormatWrite { prefix, deposits: vec![deposit] });
        }
        // The tag is that of the last one.
        writes.sort_by_key(|write| write.prefix == prefix);
        Ok(self.commit(writes, turn).await?)
    }

    /// Refuses to delete the `oai_dc` of an item that has other formats.
    async fn check_common(&self, identifier: &str) -> Result<(), DepositError> {
        let is_needed = self.settings.dc_required
            && self.live_formats(identifier).await?.iter().any(|prefix| prefix != DUBLIN_CORE);
        if is_needed {
            let text = format!(
                "{identifier} has other formats, and each item needs oai_dc; delete the whole item, or set dc_required = \
                 false"
            );
            return Err(DepositError::Unfit(text));
        }
        Ok(())
    }

    /// Refuses an item that the writer may not write: its sets as they are stored, in all formats, or as they will be.
    async fn check_rights(
        &self,
        identifier: &str,
        set_specs: Option<&[String]>,
        terms: WriteTerms<'_>,
    ) -> Result<(), DepositError> {
        let Some(may_write) = terms.may_write else { return Ok(()) };
        let forbidden = || Err(DepositError::Forbidden(identifier.to_owned()));
        if set_specs.is_some_and(|set_specs| !may_write(set_specs)) {
            return forbidden();
        }
        // Those who harvest the set of a deleted record must still see that it is gone.
        let formats = self.stores.store.formats_of_item(self.id(), Identifier(identifier)).await?;
        for (prefix, _) in formats {
            // The sets of a damaged record are unknown.
            match self.record(&prefix, identifier).await {
                Err(MirrorError::Damaged) => return forbidden(),
                Ok(Some(stored)) if !may_write(&stored.set_specs) => return forbidden(),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Refuses new identifiers that another repository has.
    async fn check_owners(&self, deposits: &[Deposit]) -> Result<(), DepositError> {
        if self.settings.foreign_identifiers {
            return Ok(());
        }
        let store = &self.stores.store;
        let mut others = store.repositories().await?;
        // Names of repositories begin with a letter or a digit; the others are those of views and the index.
        others.retain(|other| *other != self.settings.id && !other.starts_with('_'));
        if others.is_empty() {
            return Ok(());
        }
        let all: Vec<String> = deposits.iter().map(|deposit| deposit.identifier.clone()).collect();
        let stored = store.formats_of_items(self.id(), &all).await?;
        let is_live = |formats: &Vec<(String, RecordStatus)>| {
            formats.iter().any(|(_, status)| *status == RecordStatus::Live)
        };
        // Who has deleted a record may not write it again if another repository has it since.
        let is_ours = |deposit: &Deposit, formats: &Vec<(String, RecordStatus)>| match deposit.payload {
            Some(_) => is_live(formats),
            None => !formats.is_empty(),
        };
        let pairs = deposits.iter().zip(&stored).filter(|(deposit, formats)| !is_ours(deposit, formats));
        let mut identifiers: Vec<String> = pairs.map(|(deposit, _)| deposit.identifier.clone()).collect();
        if identifiers.is_empty() {
            return Ok(());
        }
        for other in others {
            let formats = store.formats_of_items(RepositoryId(&other), &identifiers).await?;
            if let Some(place) = formats.iter().position(is_live) {
                let identifier = identifiers.swap_remove(place);
                return Err(DepositError::Foreign { identifier, repository: other });
            }
        }
        Ok(())
    }

    /// The formats in which an item is live.
    async fn live_formats(&self, identifier: &str) -> Result<Vec<String>, MirrorError> {
        let formats = self.stores.store.formats_of_item(self.id(), Identifier(identifier)).await?;
        let live = formats.into_iter().filter(|(_, status)| *status == RecordStatus::Live);
        Ok(live.map(|(prefix, _)| prefix).collect())
    }

    /// The format of a prefix, which may be new. All records have its namespace.
    async fn format_of(&self, prefix: &str, deposits: &[Deposit]) -> Result<ListedFormat, DepositError> {
        let catalog = self.stores.store.catalog(self.id()).await?;
        let known = catalog.formats.iter().find(|format| format.prefix == prefix).cloned();
        let format = match known {
            Some(format) => format,
            None => self.new_format(prefix, deposits)?,
        };
        for deposit in deposits {
            if let Some(payload) = &deposit.payload
                && payload.namespace != format.namespace
            {
                let text = format!(
                    "the root element of {} has the namespace {}, and {prefix} has {}",
                    deposit.identifier, payload.namespace, format.namespace
                );
                return Err(DepositError::Unfit(text));
            }
        }
        Ok(format)
    }

    /// Lists a format, if it is new.
    async fn list_format(&self, format: ListedFormat) -> Result<(), MirrorError> {
        let mut catalog = self.stores.store.catalog(self.id()).await?;
        if catalog.formats.iter().all(|listed| listed.prefix != format.prefix) {
            catalog.formats.push(format);
            self.stores.store.save_catalog(self.id(), catalog).await?;
        }
        Ok(())
    }

    /// A format that the repository does not have yet: of its settings, or as its first record says.
    fn new_format(&self, prefix: &str, deposits: &[Deposit]) -> Result<ListedFormat, DepositError> {
        if prefix.contains(':') || set_spec::read(prefix.as_bytes()).is_none() {
            let text = format!(
                "\"{}\" is not a metadataPrefix; expected letters, digits and -_.!~*'()",
                prefix.escape_debug()
            );
            return Err(DepositError::Unfit(text));
        }
        if let Some(format) = self.settings.formats.get(prefix) {
            return Ok(format.listed_as(prefix));
        }
        let said = deposits.iter().find_map(|deposit| {
            let payload = deposit.payload.as_ref()?;
            Some(FormatSettings { schema: payload.schema.clone()?, namespace: payload.namespace.clone() })
        });
        said.map(|format| format.listed_as(prefix)).ok_or_else(|| {
            DepositError::Unfit(format!(
                "the repository has no format {prefix} yet; its first record names its schema in xsi:schemaLocation, or the \
                 mapping does in [formats.{prefix}]"
            ))
        })
    }

    /// The `oai_dc` records that follow from records in another format: new ones for items without any, and others in place
    /// of those that a crosswalk made of the record before.
    async fn dublin_core(
        &self,
        format: &ListedFormat,
        deposits: &[Deposit],
    ) -> Result<Vec<Deposit>, DepositError> {
        let failed = |failure: oaimend_repository::Failure| MirrorError::Stopped(failure.details);
        let mut derived: BTreeMap<&str, Deposit> = BTreeMap::new();
        for deposit in deposits {
            let identifier = deposit.identifier.as_str();
            let stored = self.readable(DUBLIN_CORE, identifier).await?;
            let stored = stored.as_ref().filter(|record| record.status == RecordStatus::Live);
            let before = match self.readable(&format.prefix, identifier).await? {
                Some(before) if before.status == RecordStatus::Live => written(&before),
                _ => None,
            };
            let made_before = match &before {
                Some(before) => dublin_core_of(before, format).await.map_err(failed)?,
                None => None,
            };
            let in_store =
                stored.and_then(written).and_then(|written| written.payload).map(|payload| payload.xml);
            let is_made = in_store.is_some() && in_store == made_before.map(|payload| payload.xml);
            if in_store.is_some() && !is_made {
                continue;
            }
            let mut made = dublin_core_of(deposit, format).await.map_err(failed)?;
            if deposit.payload.is_none() {
                match self.dublin_core_of_others(identifier, &format.prefix).await? {
                    Others::None => {}
                    Others::Unreadable => continue,
                    Others::Made(payload) => made = Some(payload),
                }
            } else if made.is_none() {
                let text = format!(
                    "{identifier} has no oai_dc, and no crosswalk makes it of {}; write its oai_dc first, or set dc_required \
                     = false in the mapping",
                    format.prefix
                );
                return Err(DepositError::Unfit(text));
            }
            if made.is_some() || is_made {
                derived.insert(identifier, Deposit { payload: made, ..deposit.clone() });
            }
        }
        Ok(derived.into_values().collect())
    }

    /// The `oai_dc` of an item without its record in a format.
    async fn dublin_core_of_others(&self, identifier: &str, without: &str) -> Result<Others, MirrorError> {
        let mut others = Others::None;
        for prefix in self.live_formats(identifier).await? {
            if prefix == DUBLIN_CORE || prefix == without {
                continue;
            }
            others = Others::Unreadable;
            let catalog = self.stores.store.catalog(self.id()).await?;
            let format = catalog.formats.into_iter().find(|format| format.prefix == prefix);
            let stored = self.readable(&prefix, identifier).await?;
            if let (Some(format), Some(record)) = (format, stored.as_ref().and_then(written)) {
                let made = dublin_core_of(&record, &format).await;
                if let Some(payload) = made.map_err(|failure| MirrorError::Stopped(failure.details))? {
                    return Ok(Others::Made(payload));
                }
            }
        }
        Ok(others)
    }

    /// Stores records of all these formats with one stamp. It continues if the returned future is dropped, and so does the
    /// turn.
    async fn commit(
        &self,
        writes: Vec<FormatWrite>,
        turn: OwnedMutexGuard<()>,
    ) -> Result<Stored, MirrorError> {
        let store = Arc::clone(&self.stores.store);
        let id = self.settings.id.clone();
        let change = move |stamp_secs: UnixSecs| async move {
            let _turn = turn;
            let mut stored = Stored { stamp_secs, changed: 0, tag: None, is_new: false };
            for FormatWrite { prefix, deposits } in writes {
                let mut progress = store.progress(RepositoryId(&id), Prefix(&prefix)).await?;
                progress.last_complete = Some(CompleteHarvest { from_secs: stamp_secs, lead_secs: 0 });
                let records = deposits.iter().map(|deposit| deposit.to_record(stamp_secs)).collect();
                let page = PageCommit {
                    repository: id.clone(),
                    prefix: prefix.clone(),
                    stamp_secs,
                    records,
                    progress,
                    occurrences: Vec::new(),
                };
                let committed = store.commit(page).await?;
                stored.changed += committed.stored + committed.deleted;
                // In this turn: the next writer may change it.
                if let [deposit] = deposits.as_slice() {
                    let identifier = Identifier(&deposit.identifier);
                    let record = store.record(RepositoryId(&id), Prefix(&prefix), identifier).await?;
                    stored.stamp_secs = record.as_ref().map_or(stamp_secs, |record| record.stamp_secs);
                    stored.tag = record.as_ref().map(EntityTag::of);
                } else {
                    (stored.stamp_secs, stored.tag) = (stamp_secs, None);
                }
            }
            Ok(stored)
        };
        self.stores.stamps.commit_change(self.now_secs, change).await
    }
}
