//! Sends events to a webhook, signed as the convention Standard Webhooks describes.

use super::event::Event;
use crate::config::{WebhookKey, WebhookTarget};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use oaimend_base::clock::{self, Clock};
use oaimend_upstream::Endpoint;
use ring::hmac;

/// An event on its way to a webhook. All attempts to deliver it have the same id and the same body.
#[derive(Debug)]
pub struct WebhookMessage {
    id: String,
    body: Vec<u8>,
}

impl WebhookMessage {
    /// The message about an event, with a random id.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub fn new(event: &Event, public_url: &str) -> Result<Self, String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| format!("there are no random numbers: {error}"))?;
        let body = event.to_json(public_url).to_string().into_bytes();
        Ok(Self { id: format!("msg_{}", hex::encode(random)), body })
    }

    /// Tries once to deliver it. Each status from 200 to 299 accepts it.
    ///
    /// # Errors
    ///
    /// The receiver has not accepted it. The text contains neither the secret nor the URL.
    pub async fn send(&self, target: &WebhookTarget, clock: &dyn Clock) -> Result<StatusCode, String> {
        let endpoint = Endpoint::new(&target.url, target.ca_file.as_deref())?;
        let headers = self.headers(&target.key, clock::secs(clock.now()));
        let status = endpoint.post(headers, self.body.clone(), clock).await?;
        if status.is_success() { Ok(status) } else { Err(format!("status {status}")) }
    }

    fn headers(&self, key: &WebhookKey, now_secs: u64) -> HeaderMap {
        let signature = signature(key.bytes(), &self.id, now_secs, &self.body);
        let text = |text: &str| HeaderValue::from_str(text).expect("letters, digits and base64");
        HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (HeaderName::from_static("webhook-id"), text(&self.id)),
            (HeaderName::from_static("webhook-timestamp"), HeaderValue::from(now_secs)),
            (HeaderName::from_static("webhook-signature"), text(&signature)),
        ])
    }
}

/// The signature of a message: HMAC-SHA256 over its id, the time of the attempt in seconds since 1970, and its body.
fn signature(key: &[u8], id: &str, now_secs: u64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(format!("{id}.{now_secs}.").as_bytes());
    context.update(body);
    format!("v1,{}", STANDARD.encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn signature_is_that_of_the_specification() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a literal key");
        let body = br#"{"test": 2432232314}"#;
        let signature = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
