//! The service that an OpenURL asks for.

use crate::parameters::Parameters;
use oaimend_oai::named_enum;

named_enum! {
    /// A service of aDORe, the repository of the Los Alamos National Laboratory, by its `svc_id`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Service {
        /// The newest version of the record, in the format `didl`.
        Didl = "info:lanl-repo/svc/getDIDL",
        /// The same, by another name.
        DidlXml = "info:lanl-repo/svc/getDIDL.xml",
        /// All places of the identifier.
        Locate = "info:lanl-repo/svc/locate",
        /// The same. aDORe answers with records of SRU.
        LocateSru = "info:lanl-repo/svc/locate.sru",
        /// The identifiers of the records about it, as text.
        Identifiers = "info:lanl-repo/svc/identifiers.list",
        /// The content that the record describes.
        Datastream = "info:lanl-repo/svc/getDatastream",
    }
}

/// The service that an OpenURL asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedService {
    /// It says nothing, so it wants the page of the record.
    Page,
    /// A service by its name.
    Known(Service),
    /// Only services that do not exist here, by the first name. An answer other than the requested one would mislead a
    /// program, so this is a request for what is not there.
    Unknown(String),
}

impl RequestedService {
    /// The first known name counts.
    pub(crate) fn read(parameters: &Parameters) -> Self {
        match parameters.all("svc_id").find_map(Service::from_name) {
            Some(service) => Self::Known(service),
            None => match parameters.all("svc_id").next() {
                Some(name) => Self::Unknown(name.to_owned()),
                None => Self::Page,
            },
        }
    }
}
