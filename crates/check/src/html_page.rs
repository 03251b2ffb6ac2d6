//! Recognizes HTML pages in place of OAI-PMH responses: login pages, error pages, checks for bots.

/// Describes an HTML page with its title; `None` if the body is no HTML page.
pub(crate) fn describe(body: &[u8]) -> Option<String> {
    let start = body.get(..START_BYTES_MAX).unwrap_or(body);
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let mut rest = start.trim_start_matches('\u{feff}').trim_start();
    // The XML declaration and comments may precede the document element.
    while let Some(after) = after_markup(rest, "<?", "?>").or_else(|| after_markup(rest, "<!--", "-->")) {
        rest = after.trim_start();
    }
    let is_html = ["<!doctype html", "<html"].iter().any(|mark| {
        let next = rest.strip_prefix(mark).map(|after| after.chars().next());
        next.is_some_and(|next| next.is_none_or(|next| next.is_whitespace() || next == '>'))
    });
    is_html.then(|| {
        let title = read_title(body).filter(|title| !title.is_empty());
        title.map_or_else(
            || "an HTML page without a title".to_owned(),
            |title| format!("an HTML page with the title \"{title}\""),
        )
    })
}

fn after_markup<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.strip_prefix(open)?.split_once(close).map(|(_, after)| after)
}

/// The text of the first title element, in one line.
fn read_title(body: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(body.get(..HEAD_BYTES_MAX).unwrap_or(body)).into_owned();
    // ASCII case folding keeps the positions of bytes.
    let folded = head.to_ascii_lowercase();
    let open = folded.find("<title")?;
    let start = open + folded.get(open..)?.find('>')? + 1;
    let end = start + folded.get(start..)?.find("</title")?;
    Some(head.get(start..end)?.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The part of a body in which the document element of an HTML page begins, in bytes.
const START_BYTES_MAX: usize = 4 << 10;
/// The part of a body in which the title is searched, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_pages_are_named_with_their_title() {
        for (page, description) in [
            (
                "<!DOCTYPE html><title>Just a\n moment...</title>",
                "an HTML page with the title \"Just a moment...\"",
            ),
            ("\u{feff} <HTML LANG=en><TITLE x=1>Log in</TITLE>", "an HTML page with the title \"Log in\""),
            ("<?xml version='1.0'?><!-- x --><html xmlns='x'></html>", "an HTML page without a title"),
            ("<html>", "an HTML page without a title"),
        ] {
            assert_eq!(describe(page.as_bytes()).as_deref(), Some(description), "{page}");
        }
        for other in ["", "<htmlx>", "<OAI-PMH><html/></OAI-PMH>", "{}", "<!doctype htmls>"] {
            assert_eq!(describe(other.as_bytes()), None, "{other}");
        }
    }
}
