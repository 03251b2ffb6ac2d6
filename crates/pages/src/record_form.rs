//! The forms of a record, and their choice by `Accept`.

/// A form in which a record is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecordForm {
    /// The page.
    #[default]
    Html,
    /// The XML of the record.
    Xml,
    /// The metadata of the record alone, as XML.
    RawMetadata,
    /// The fields as JSON-LD.
    JsonLd,
    /// A citation in BibTeX.
    BibTeX,
    /// A citation in RIS.
    Ris,
    /// A citation in CSL-JSON.
    CslJson,
    /// The links of the page as JSON (RFC 9264).
    LinksetJson,
    /// The links of the page as text (RFC 9264).
    Linkset,
    /// The links with other records as JSON.
    LinksJson,
}

impl RecordForm {
    /// The forms that endings and `Accept` select, the preferred ones first.
    const SELECTED: [Self; 9] = [
        Self::Html,
        Self::Xml,
        Self::JsonLd,
        Self::BibTeX,
        Self::Ris,
        Self::CslJson,
        Self::LinksetJson,
        Self::Linkset,
        Self::LinksJson,
    ];

    /// The value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=UTF-8",
            Self::Xml | Self::RawMetadata => "application/xml; charset=UTF-8",
            Self::JsonLd => "application/ld+json",
            Self::BibTeX => "application/x-bibtex; charset=UTF-8",
            Self::Ris => "application/x-research-info-systems; charset=UTF-8",
            Self::CslJson => "application/vnd.citationstyles.csl+json",
            Self::LinksetJson => "application/linkset+json",
            Self::Linkset => "application/linkset; charset=UTF-8",
            Self::LinksJson => "application/json",
        }
    }

    /// The ending of the path that selects the form; empty for the forms that no ending selects.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Html | Self::RawMetadata => "",
            Self::Xml => ".xml",
            Self::JsonLd => ".json",
            Self::BibTeX => ".bib",
            Self::Ris => ".ris",
            Self::CslJson => ".csl.json",
            Self::LinksetJson => ".linkset.json",
            Self::Linkset => ".linkset",
            Self::LinksJson => ".links.json",
        }
    }

    /// The form that the longest ending of a path selects, and the path before it. `None` if no ending does.
    pub(crate) fn of_path(path: &str) -> Option<(&str, Self)> {
        let ended = Self::SELECTED.into_iter().filter(|form| !form.ending().is_empty());
        ended
            .filter_map(|form| Some((path.strip_suffix(form.ending())?, form)))
            .min_by_key(|(before, _)| before.len())
    }

    /// The media types by which clients request the form. The first one is that of the response.
    const fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Html => &["text/html", "application/xhtml+xml"],
            Self::Xml => &["application/xml", "text/xml"],
            Self::RawMetadata | Self::LinksJson => &[],
            Self::JsonLd => &["application/ld+json", "application/json"],
            Self::BibTeX => &["application/x-bibtex", "text/x-bibtex"],
            Self::Ris => &["application/x-research-info-systems"],
            Self::CslJson => &["application/vnd.citationstyles.csl+json"],
            Self::LinksetJson => &["application/linkset+json"],
            Self::Linkset => &["application/linkset"],
        }
    }

    /// The form that an `Accept` field prefers (RFC 9110, section 12.5.1): the page if it has no preference, and if it
    /// accepts none of the forms. A form whose media type has the weight 0 is not accepted under its other names.
    pub fn accepted(accept: &str) -> Self {
        let ranges: Vec<(String, f32)> = accept.split(',').filter_map(read_range).collect();
        let is_refused = |form: Self| {
            form.media_types().first().is_some_and(|media_type| {
                ranges.iter().any(|(range, weight)| range == media_type && *weight <= 0.0)
            })
        };
        let mut best = (0.0, None);
        for form in Self::SELECTED.into_iter().filter(|form| !is_refused(*form)) {
            let weights = form.media_types().iter().map(|media_type| weight_of(media_type, &ranges));
            let weight = weights.fold(0.0, f32::max);
            if weight > best.0 {
                best = (weight, Some(form));
            }
        }
        // `text/html;q=0` alone accepts nothing, and refuses the page.
        let others = || Self::SELECTED.into_iter().find(|form| !is_refused(*form));
        best.1.or_else(others).unwrap_or_default()
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
            ("text/html;q=0, */*", RecordForm::Xml),
            ("text/html;q=0, application/xhtml+xml, application/xml;q=0", RecordForm::JsonLd),
            ("application/x-bibtex", RecordForm::BibTeX),
            ("text/x-bibtex, text/html;q=0.9", RecordForm::BibTeX),
            ("application/x-research-info-systems", RecordForm::Ris),
            ("application/vnd.citationstyles.csl+json, application/json;q=0.9", RecordForm::CslJson),
            ("application/linkset", RecordForm::Linkset),
            ("application/linkset+json;q=0.1", RecordForm::LinksetJson),
            ("text/html;q=0", RecordForm::Xml),
            ("text/html; q=0.000, application/xml;q=0", RecordForm::JsonLd),
            ("*/*;q=0", RecordForm::Html),
            ("application/*, text/html;q=0.2", RecordForm::Html),
            ("text/html;q=0, application/xhtml+xml;q=0, */*", RecordForm::Xml),
            ("application/json;q=0.3, application/xml;q=0.4", RecordForm::Xml),
        ] {
            assert_eq!(RecordForm::accepted(accept), form, "{accept}");
        }
    }
}
