//! Properties of a harvester that a mirror can use, and the request header that states them.

/// Properties of the harvester that sends a request. The mirror of another oaimend states them in the request header
/// `Oaimend-Harvester`, a list of the names of its properties. Other harvesters have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HarvesterTraits {
    /// `total-elements`: it understands the attribute `totalElements` of a resumptionToken, which the OAI-PMH schema does
    /// not have.
    pub reads_total_elements: bool,
    /// `from-first-response-date`: the `from` of its lists is never later than the responseDate of the first page of its
    /// last complete list of the same base URL.
    pub continues_from_first_response: bool,
    /// Maximum number of items that it wants in a page of a list; `None`: any. Repositories whose sources make the pages
    /// ignore it. No header states it.
    pub page_items_max: Option<usize>,
}

impl HarvesterTraits {
    /// The name of the header.
    pub const HEADER: &'static str = "oaimend-harvester";
    /// The properties of the mirror of oaimend.
    pub const OF_MIRROR: Self =
        Self { reads_total_elements: true, continues_from_first_response: true, page_items_max: None };

    const TOTAL_ELEMENTS: &'static str = "total-elements";
    const FROM_FIRST_RESPONSE: &'static str = "from-first-response-date";

    /// Reads the value of the header. Unknown names are ignored, because later versions may have more.
    pub fn read(value: &str) -> Self {
        let has = |wanted: &str| value.split(',').any(|name| name.trim() == wanted);
        Self {
            reads_total_elements: has(Self::TOTAL_ELEMENTS),
            continues_from_first_response: has(Self::FROM_FIRST_RESPONSE),
            page_items_max: None,
        }
    }

    /// The value of the header; `None` for a harvester without any property.
    pub fn to_header(self) -> Option<String> {
        let names = [
            self.reads_total_elements.then_some(Self::TOTAL_ELEMENTS),
            self.continues_from_first_response.then_some(Self::FROM_FIRST_RESPONSE),
        ];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for (reads_total_elements, continues_from_first_response) in
            [(true, true), (true, false), (false, true)]
        {
            let traits = HarvesterTraits {
                reads_total_elements,
                continues_from_first_response,
                ..HarvesterTraits::default()
            };
            let header = traits.to_header().expect("it has a property");
            assert_eq!(HarvesterTraits::read(&header), traits, "{header}");
        }
        assert_eq!(HarvesterTraits::default().to_header(), None);
    }

    #[test]
    fn unknown_and_similar_names_are_no_properties() {
        for value in ["", "total-element", "x total-elements", "TOTAL-ELEMENTS; q=1", "total_elements,,later"]
        {
            assert_eq!(HarvesterTraits::read(value), HarvesterTraits::default(), "{value}");
        }
        let read = HarvesterTraits::read(" later ,total-elements");
        assert_eq!(read, HarvesterTraits { reads_total_elements: true, ..HarvesterTraits::default() });
    }
}
