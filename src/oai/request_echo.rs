//! The request of a harvester, as a response repeats it.

/// The request as the harvester made it, for the `request` element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestEcho {
    /// The public base URL the harvester asked.
    pub base_url: String,
    /// The arguments, `verb` first; names as in the schema, values decoded.
    /// Left out of the answer beside `badVerb` and `badArgument`.
    pub arguments: Vec<(String, String)>,
}
