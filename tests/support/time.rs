//! Time for tests: pauses are over at once, time-outs when somebody says so.
#![allow(dead_code, reason = "each test binary uses its part")]

use futures::FutureExt;
use futures::future::BoxFuture;
use oaimend::clock::Clock;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// Waits for nothing. A pause is written down and is over, and the clock has moved on;
/// a time-out comes when its time has passed, or at once when a test lets it lapse.
#[derive(Debug)]
pub(crate) struct Skipping {
    pauses: Mutex<Vec<Duration>>,
    lapsed: watch::Sender<()>,
}

impl Skipping {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { pauses: Mutex::default(), lapsed: watch::Sender::new(()) })
    }

    /// All pauses so far, in their order.
    pub(crate) fn pauses(&self) -> Vec<Duration> {
        self.pauses.lock().expect("no test panics while it holds this").clone()
    }

    /// Ends the time-outs that run now.
    pub(crate) fn lapse(&self) {
        self.lapsed.send_replace(());
    }
}

impl Clock for Skipping {
    fn now(&self) -> SystemTime {
        oaimend::clock::now() + self.pauses().iter().sum::<Duration>()
    }

    fn chance(&self) -> f64 {
        0.5
    }

    fn pause(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.pauses.lock().expect("no test panics while it holds this").push(time);
        tokio::task::yield_now().boxed()
    }

    fn deadline(&self, time: Duration) -> BoxFuture<'static, ()> {
        let mut lapsed = self.lapsed.subscribe();
        async move {
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                changed = lapsed.changed() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            }
        }
        .boxed()
    }
}
