//! The health checks of both listeners.

use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::response::Response;
use oaimend_store::Databases;

/// Whether the process runs.
pub(crate) fn livez() -> Response {
    Response::text(200, "ok")
}

/// Whether the server accepts requests and can use its stores. Sources have no influence.
pub(crate) fn readyz(lifecycle: &Lifecycle, databases: &Databases) -> Response {
    if lifecycle.is_draining() {
        return Response::text(503, "ending");
    }
    match databases.unusable() {
        failed if failed.is_empty() => Response::text(200, "ok"),
        failed => {
            let names = failed.iter().map(|store| store.name()).collect::<Vec<_>>().join(", ");
            let text = format!("the disk failed under these stores: {names}");
            Response::text(503, &text)
        }
    }
}
