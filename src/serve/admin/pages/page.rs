//! What all pages of the admin listener have in common.

use crate::serve::pages::answer;
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::records::record::with_policies;
use crate::serve::response::Response;
use oaimend_html::Site;
use oaimend_pages::RecordForm;
use oaimend_pages::html::UnknownOperatorPage;
use oaimend_pages::texts::operator as texts;

/// The site as the admin listener shows it. Its pages exist even if the public listener has none.
pub(super) fn site(gateway: &Gateway) -> Site {
    gateway.current().site.for_operators()
}

/// The style sheet at this path.
pub(crate) fn style_sheet(gateway: &Gateway, path: &str) -> Response {
    answer::style_sheet(site(gateway).style_sheets(), path)
}

/// The page in place of a repository that no mapping has.
pub(super) fn no_repository(site: &Site) -> Response {
    html(
        404,
        UnknownOperatorPage { site, title: texts::UNKNOWN_REPOSITORY_TITLE, text: texts::UNKNOWN_REPOSITORY }
            .render(),
    )
}

/// A page that no one stores, because it contains what only operators may know.
pub(super) fn html(status: u16, html: String) -> Response {
    let page = Response::new(status, RecordForm::Html.content_type(), html);
    with_policies(page.with("Cache-Control", "no-store".to_owned()))
}
