//! Other forms of a request, for sources that need them.

use super::{Argument, DAY_CHARS, Request};

impl Request {
    /// The same request without a format: OAI-PMH 1.x lists identifiers without one.
    #[must_use]
    pub fn without_format(&self) -> Self {
        let mut arguments = self.arguments.to_vec();
        arguments.retain(|(argument, _)| *argument != Argument::MetadataPrefix);
        Self::new(self.verb, arguments)
    }

    /// The same request in another format.
    #[must_use]
    pub fn in_format(&self, metadata_prefix: &str) -> Self {
        let mut arguments = self.arguments.to_vec();
        for (argument, value) in &mut arguments {
            if *argument == Argument::MetadataPrefix {
                metadata_prefix.clone_into(value);
            }
        }
        Self::new(self.verb, arguments)
    }

    /// Whether one of its dates has seconds.
    pub fn has_seconds(&self) -> bool {
        let dates = [Argument::From, Argument::Until].map(|date| self.argument(date));
        dates.into_iter().flatten().any(|date| date.len() > DAY_CHARS)
    }

    /// The same request with dates cut to days: the smallest range of whole days that contains the
    /// requested one.
    #[must_use]
    pub fn with_day_dates(&self) -> Self {
        let mut arguments = self.arguments.to_vec();
        for (argument, value) in &mut arguments {
            if matches!(argument, Argument::From | Argument::Until) {
                value.truncate(DAY_CHARS);
            }
        }
        Self::new(self.verb, arguments)
    }

    /// The same request without the dates before `earliest`, a datestamp: without a `from` that begins, and
    /// without an `until` that ends before it.
    #[must_use]
    pub fn without_dates_before(&self, earliest: &str) -> Self {
        let mut arguments = self.arguments.to_vec();
        arguments.retain(|(argument, date)| !argument.is_date_before(date, earliest));
        Self::new(self.verb, arguments)
    }

    /// Whether one of its dates is before `earliest`, a datestamp.
    pub fn has_date_before(&self, earliest: &str) -> bool {
        self.arguments.iter().any(|(argument, date)| argument.is_date_before(date, earliest))
    }

    /// The same request with the format of its list, which OAI-PMH forbids beside a token and some sources
    /// need. It cannot be parsed again.
    #[must_use]
    pub fn with_format_of_list(&self, metadata_prefix: &str) -> Self {
        let mut arguments = self.arguments.to_vec();
        arguments.push((Argument::MetadataPrefix, metadata_prefix.to_owned()));
        Self::new(self.verb, arguments)
    }

    /// The same request with each time of day set to midnight: the range of
    /// [`Self::with_day_dates`], but in seconds.
    #[must_use]
    pub fn with_midnight_dates(&self) -> Self {
        let mut arguments = self.arguments.to_vec();
        for (argument, value) in &mut arguments {
            if matches!(argument, Argument::From | Argument::Until) && value.len() > DAY_CHARS {
                value.truncate(DAY_CHARS);
                value.push_str("T00:00:00Z");
            }
        }
        Self::new(self.verb, arguments)
    }

    /// The same request for one set.
    #[must_use]
    pub fn with_set(&self, set: &str) -> Self {
        let mut arguments = self.arguments.to_vec();
        arguments.retain(|(argument, _)| *argument != Argument::Set);
        arguments.push((Argument::Set, set.to_owned()));
        Self::new(self.verb, arguments)
    }

    /// The same list from a datestamp on, in the granularity of its `until`; `None` for a
    /// resumption.
    pub fn starting_from(&self, datestamp: &str) -> Option<Self> {
        if self.is_resumption() {
            return None;
        }
        let day = datestamp.get(..DAY_CHARS)?;
        let from = match self.argument(Argument::Until).map(str::len) {
            Some(DAY_CHARS) => day.to_owned(),
            Some(_) if datestamp.len() == DAY_CHARS => format!("{day}T00:00:00Z"),
            _ => datestamp.to_owned(),
        };
        let mut arguments = self.arguments.to_vec();
        arguments.retain(|(argument, _)| *argument != Argument::From);
        arguments.push((Argument::From, from));
        Some(Self::new(self.verb, arguments))
    }
}
