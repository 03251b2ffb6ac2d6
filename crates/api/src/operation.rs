//! The operations of the API, by their paths.

use oaimend_oai::named_enum;

named_enum! {
    /// An operation. Its name is the `operationId` of the OpenAPI document.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Operation {
        /// The OpenAPI document.
        OpenApi = "getOpenApi",
        /// The repositories of this server.
        Repositories = "listRepositories",
        /// The description of a repository.
        Repository = "getRepository",
        /// Records of a repository.
        Records = "listRecords",
        /// One record.
        Record = "getRecord",
        /// The sets of a repository.
        Sets = "listSets",
        /// The formats of a repository, or of one record.
        Formats = "listFormats",
        /// Found records.
        Search = "search",
    }
}

impl Operation {
    /// The folder of all versions of the API.
    pub const FOLDER: &'static str = "/_api/";

    /// The path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::OpenApi => "/_api/v1/openapi.json",
            Self::Repositories => "/_api/v1/repositories",
            Self::Repository => "/_api/v1/repositories/{id}",
            Self::Records => "/_api/v1/records",
            Self::Record => "/_api/v1/record",
            Self::Sets => "/_api/v1/sets",
            Self::Formats => "/_api/v1/formats",
            Self::Search => "/_api/v1/search",
        }
    }

    /// What it returns, for the OpenAPI document.
    pub(crate) const fn summary(self) -> &'static str {
        match self {
            Self::OpenApi => "The description of this API",
            Self::Repositories => "The repositories of this server",
            Self::Repository => "The description of a repository",
            Self::Records => "A page of the records of a repository",
            Self::Record => "One record",
            Self::Sets => "A page of the sets of a repository",
            Self::Formats => "The formats of a repository or of a record",
            Self::Search => "A page of found records",
        }
    }
}
