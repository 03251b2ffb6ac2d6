//! The request of a harvester, as a response repeats it.

/// The harvester's request, for the `request` element.
///
/// ```
/// use oaimend_oai::Request;
///
/// let echo = Request::identify().to_echo("http://proxy.example.org/x");
/// assert_eq!(echo.base_url, "http://proxy.example.org/x");
/// assert_eq!(echo.arguments, [("verb".to_owned(), "Identify".to_owned())]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestEcho {
    /// The public base URL of the request.
    pub base_url: String,
    /// The arguments, `verb` first; names as in the schema, values decoded.
    /// Left out of responses with `badVerb` or `badArgument`.
    pub arguments: Vec<(String, String)>,
}
