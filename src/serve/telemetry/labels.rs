//! The values of the labels of metrics. The log has the same values, and docs/reference/metrics.md lists them.

use oaimend_oai::named_enum;
use oaimend_search::IndexError;

named_enum! {
    /// How a request ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum RequestOutcome {
        /// The page was sent completely.
        Complete = "complete",
        /// The response was an OAI error.
        OaiError = "oai-error",
        /// The page ended early with a token that continues it.
        Continued = "continued",
        /// The mirror answered in place of the source.
        FailedOver = "failed-over",
        /// The request was refused and never reached the source.
        Refused = "refused",
        /// There was no page.
        Failed = "failed",
        /// The response was aborted, because the source failed in the middle of the page.
        BrokenOff = "broken-off",
        /// The client left before the end.
        Abandoned = "abandoned",
    }
}

named_enum! {
    /// How the cache answered a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum CacheOutcome {
        /// By a session of its own.
        Miss = "miss",
        /// By the session of another request.
        Collapsed = "collapsed",
        /// By a cached page.
        Hit = "hit",
        /// By an old page, because the source fails.
        Stale = "stale",
        /// Not at all: the response cannot be cached.
        Bypass = "bypass",
    }
}

named_enum! {
    /// Why a request or a connection was refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum RefusalReason {
        /// The rate of a client.
        Rate = "rate",
        /// The rate of a class.
        ClassRate = "class-rate",
        /// The requests in flight of a client.
        InFlight = "in-flight",
        /// The requests in flight of a class.
        ClassInFlight = "class-in-flight",
        /// The waiting requests of a client.
        Waiting = "waiting",
        /// The waiting requests of a class.
        ClassWaiting = "class-waiting",
        /// The limit of all connections.
        Connections = "connections",
        /// The limit of the connections of one address.
        ClientConnections = "client-connections",
        /// The header did not arrive in time.
        SlowHeader = "slow-header",
        /// The header is too long, or has too many fields.
        LongHeader = "long-header",
        /// The URI is too long.
        LongUri = "long-uri",
        /// The bytes are not HTTP.
        NoHttp = "no-http",
        /// The bytes at the listener with TLS are HTTP without TLS.
        NoTls = "no-tls",
        /// No agreement on TLS, or not in time.
        TlsHandshake = "tls-handshake",
        /// The method CONNECT.
        Connect = "connect",
    }
}

named_enum! {
    /// How a harvest of the mirror ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum HarvestOutcome {
        /// Every format was harvested completely, and nothing is missing.
        Complete = "complete",
        /// All lists ended, and deletions wait for a confirmation.
        Held = "held",
        /// All lists ended, and some of their items are missing.
        Missing = "missing",
        /// A format was not harvested completely. The next harvest continues.
        Incomplete = "incomplete",
        /// The source did not describe itself, or the store failed.
        Failed = "failed",
    }
}

named_enum! {
    /// What happened to a full text.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum FullTextOutcome {
        /// Its references were read.
        Read = "read",
        /// The server cannot be reached, or asks for another time. It is fetched later.
        Later = "later",
        /// It failed at all attempts.
        Unreachable = "unreachable",
        /// The robots.txt of its host forbids it. It is tried again after a month.
        Robots = "robots",
        /// It leads to a host that is not allowed, or too often to another URL.
        Redirect = "redirect",
        /// Its host has an address that is not public.
        Address = "address",
        /// The server refuses it, or does not have it.
        Status = "status",
        /// It is longer than allowed.
        TooLarge = "too-large",
        /// It is no PDF.
        NotPdf = "not-pdf",
        /// pdftotext cannot read it: it is damaged, or encrypted, or takes too much memory.
        Unreadable = "unreadable",
        /// pdftotext took too long.
        TimeExceeded = "time-exceeded",
        /// Its text is too long.
        TextTooLong = "text-too-long",
        /// pdftotext crashed.
        Crashed = "crashed",
    }
}

named_enum! {
    /// Whom a notification is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum NotificationTarget {
        /// The webhook of the operator.
        Webhook = "webhook",
        /// The mailbox of the operator.
        Mail = "mail",
        /// The provider of a repository.
        Provider = "provider",
    }
}

named_enum! {
    /// How the delivery of a notification ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum NotificationResult {
        /// The target has accepted it.
        Sent = "sent",
        /// All attempts failed.
        Failed = "failed",
        /// Too many notifications wait.
        Dropped = "dropped",
    }
}

named_enum! {
    /// The state of a file in the folder of a local repository. A file can wait in addition to one of the other states.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum FolderFileState {
        /// All records of the version that was read last are published.
        Published = "published",
        /// It is not published, or not as a whole. Symlinks and subfolders that are not read count too.
        Refused = "refused",
        /// It is new, has changed or is gone since it was read, or is refused and read again.
        Waiting = "waiting",
    }
}

named_enum! {
    /// How a search ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum SearchOutcome {
        /// With its hits.
        Complete = "complete",
        /// Its query was refused.
        RefusedQuery = "refused-query",
        /// Too many searches waited.
        Busy = "busy",
        /// The index was being built, or another process had taken over.
        Building = "building",
        /// The index could not be read.
        Failed = "failed",
    }
}

impl SearchOutcome {
    /// The outcome of a search with this failure.
    pub(crate) fn of(error: Option<&IndexError>) -> Self {
        match error {
            None => Self::Complete,
            Some(IndexError::Query(_)) => Self::RefusedQuery,
            Some(IndexError::Busy) => Self::Busy,
            Some(IndexError::Building | IndexError::Closed) => Self::Building,
            Some(IndexError::Unreadable(_)) => Self::Failed,
        }
    }
}
