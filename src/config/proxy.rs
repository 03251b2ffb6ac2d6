//! The key `proxy` of a mapping.

use oaimend_upstream::settings::ProxySetting;
use url::Url;

/// Reads `proxy` of a mapping; the error text names the expected value.
pub(super) fn read_proxy(text: &str) -> Result<ProxySetting, String> {
    match text {
        "off" => return Ok(ProxySetting::Off),
        "environment" => return Ok(ProxySetting::Environment),
        _ => {}
    }
    let problem = "is not an HTTP proxy; expected \"environment\", \"off\" or a URL such as \"http://proxy.example:3128\"";
    let url = Url::parse(text).map_err(|error| format!("{problem} ({error})"))?;
    if url.scheme() != "http" || url.host().is_none() {
        return Err(format!("{problem} (http only; TLS with the source goes through the proxy unchanged)"));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(format!("{problem} (without a path)"));
    }
    Ok(ProxySetting::Url(url))
}
