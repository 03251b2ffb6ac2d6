//! The settings of sources, as plain values: the program reads them from its configuration.

mod bearer_token;
mod headers;
mod limits;
mod politeness;
mod proxy;
mod quirks;
mod secrets;
mod source_mapping;
mod static_file;

pub use bearer_token::BearerToken;
pub use headers::SourceHeaders;
pub use limits::Limits;
pub use politeness::Politeness;
pub use proxy::ProxySetting;
pub use quirks::{HeadersVia, Method, PageFallback, Quirks, Version};
pub use source_mapping::{Access, OnUnrepairable, RepairChoices, SourceMapping, SourceTls, Timeouts};
pub use static_file::StaticFile;
