//! Which redirects of a source are followed, and to which URL.

use crate::repository::{Failure, Reason};
use http::{Response, header};
use hyper::body::Incoming;
use url::Url;

/// Whether the status is a redirect.
pub(crate) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The target of a redirect from a source, if it may be followed. `name` names the source in failures.
pub(crate) fn redirect_target(name: &str, from: &Url, response: &Response<Incoming>) -> Result<Url, Failure> {
    let fail = |what: String| {
        let details = format!("{name} {what}; set base_url to the new address");
        Failure::new(Reason::Redirect, details).after_status(response.status().as_u16(), None)
    };
    let Some(location) = response.headers().get(header::LOCATION) else {
        return Err(fail("redirects without a Location".to_owned()));
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let mut to = from.join(location.trim()).map_err(|_| fail(format!("redirects to \"{location}\"")))?;
    to.set_fragment(None);
    // User and password of a redirect are not sent. Only a URL without a host refuses this.
    let _ = (to.set_username(""), to.set_password(None));
    if !matches!(to.scheme(), "http" | "https") {
        return Err(fail(format!("redirects to {to}, which is not http or https")));
    }
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(fail(format!("redirects from https to {to}, which is not followed")));
    }
    Ok(to)
}
