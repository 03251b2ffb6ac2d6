//! The forms of a record, and their choice by `Accept`.

/// A form in which a record is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecordForm {
    /// The page.
    #[default]
    Html,
    /// The XML of the record.
    Xml,
    /// The fields as JSON-LD.
    JsonLd,
}

impl RecordForm {
    /// All forms, the preferred ones first.
    const ALL: [Self; 3] = [Self::Html, Self::Xml, Self::JsonLd];

    /// The value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=UTF-8",
            Self::Xml => "application/xml; charset=UTF-8",
            Self::JsonLd => "application/ld+json",
        }
    }

    /// The media types by which clients request the form.
    const fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Html => &["text/html", "application/xhtml+xml"],
            Self::Xml => &["application/xml", "text/xml"],
            Self::JsonLd => &["application/ld+json", "application/json"],
        }
    }

    /// The form that an `Accept` field prefers (RFC 9110, section 12.5.1): the page if it has no preference, and if it
    /// accepts none of the forms.
    pub fn accepted(accept: &str) -> Self {
        let ranges: Vec<(String, f32)> = accept.split(',').filter_map(read_range).collect();
        let mut best = (0.0, Self::Html);
        for form in Self::ALL {
            let weight = form.media_types().iter().map(|media_type| weight_of(media_type, &ranges));
            let weight = weight.fold(0.0, f32::max);
            if weight > best.0 {
                best = (weight, form);
            }
        }
        best.1
    }

    /// Whether an `Accept` field names HTML, and does not prefer XML. Harvesters accept any type, or XML.
    pub fn is_html_named(accept: &str) -> bool {
        let ranges: Vec<(String, f32)> = accept.split(',').filter_map(read_range).collect();
        let named = |form: Self| {
            let of_form = ranges.iter().filter(|(range, _)| form.media_types().contains(&range.as_str()));
            of_form.map(|(_, weight)| *weight).fold(0.0, f32::max)
        };
        named(Self::Html) > 0.0 && named(Self::Html) >= named(Self::Xml)
    }
}

/// A media range and its weight. `None` if it is not one.
pub(crate) fn read_range(element: &str) -> Option<(String, f32)> {
    let mut parts = element.split(';').map(str::trim);
    let range = parts.next().filter(|range| range.contains('/'))?.to_ascii_lowercase();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    Some((range, weight.map_or(Some(1.0), |weight| weight.parse().ok())?))
}

/// The weight of a media type: that of the most specific range which contains it.
pub(crate) fn weight_of(media_type: &str, ranges: &[(String, f32)]) -> f32 {
    let kind = media_type.split_once('/').map_or("", |(kind, _)| kind);
    let any = format!("{kind}/*");
    let weight = |wanted: &str| ranges.iter().find(|(range, _)| range == wanted).map(|(_, weight)| *weight);
    weight(media_type).or_else(|| weight(&any)).or_else(|| weight("*/*")).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_named_by_browsers_only() {
        for accept in [
            "text/html",
            "Text/HTML;q=0.1, */*",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/xml, text/html",
        ] {
            assert!(RecordForm::is_html_named(accept), "{accept}");
        }
        for accept in ["", "*/*", "text/*", "text/xml", "text/xml, text/html;q=0.5", "text/html;q=0", "html"]
        {
            assert!(!RecordForm::is_html_named(accept), "{accept}");
        }
    }

    #[test]
    fn the_preferred_form_is_served() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
        for (accept, form) in [
            ("", RecordForm::Html),
            ("*/*", RecordForm::Html),
            (browser, RecordForm::Html),
            ("image/png", RecordForm::Html),
            ("nonsense, ;q=, /;q=x", RecordForm::Html),
            ("application/xml", RecordForm::Xml),
            ("text/xml; charset=utf-8", RecordForm::Xml),
            ("Application/XML, */*;q=0.1", RecordForm::Xml),
            ("application/json", RecordForm::JsonLd),
            ("application/ld+json, text/html;q=0.5", RecordForm::JsonLd),
            ("text/html;q=0, */*", RecordForm::Html),
            ("application/*, text/html;q=0.2", RecordForm::Html),
            ("text/html;q=0, application/xhtml+xml;q=0, */*", RecordForm::Xml),
            ("application/json;q=0.3, application/xml;q=0.4", RecordForm::Xml),
        ] {
            assert_eq!(RecordForm::accepted(accept), form, "{accept}");
        }
    }
}
