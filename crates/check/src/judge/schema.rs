//! The structure of a response according to OAI-PMH.xsd: allowed children, their order and number,
//! and restricted values. The contents of `metadata` and `about` are not checked.

use crate::exchange::OAI;
use crate::tree::Element;

/// The allowed children in their order: name, least number, greatest number.
type Sequence = &'static [(&'static str, usize, usize)];

const MANY: usize = usize::MAX;

/// The allowed children of an element of the envelope; `None`: it contains only text.
fn allowed_children(name: &str) -> Option<Sequence> {
    Some(match name {
        "Identify" => &[
            ("repositoryName", 1, 1),
            ("baseURL", 1, 1),
            ("protocolVersion", 1, 1),
            ("adminEmail", 1, MANY),
            ("earliestDatestamp", 1, 1),
            ("deletedRecord", 1, 1),
            ("granularity", 1, 1),
            ("compression", 0, MANY),
            ("description", 0, MANY),
        ],
        "ListMetadataFormats" => &[("metadataFormat", 1, MANY)],
        "metadataFormat" => &[("metadataPrefix", 1, 1), ("schema", 1, 1), ("metadataNamespace", 1, 1)],
        "ListSets" => &[("set", 1, MANY), ("resumptionToken", 0, 1)],
        "set" => &[("setSpec", 1, 1), ("setName", 1, 1), ("setDescription", 0, MANY)],
        "ListIdentifiers" => &[("header", 1, MANY), ("resumptionToken", 0, 1)],
        "ListRecords" => &[("record", 1, MANY), ("resumptionToken", 0, 1)],
        "GetRecord" => &[("record", 1, 1)],
        "record" => &[("header", 1, 1), ("metadata", 0, 1), ("about", 0, MANY)],
        "header" => &[("identifier", 1, 1), ("datestamp", 1, 1), ("setSpec", 0, MANY)],
        _ => return None,
    })
}

const VERBS: [&str; 6] =
    ["Identify", "ListMetadataFormats", "ListSets", "GetRecord", "ListIdentifiers", "ListRecords"];
const CODES: [&str; 8] = [
    "cannotDisseminateFormat",
    "idDoesNotExist",
    "badArgument",
    "badVerb",
    "noMetadataFormats",
    "noRecordsMatch",
    "badResumptionToken",
    "noSetHierarchy",
];

/// Returns the first violation of the schema.
pub(crate) fn find_violation(root: &Element) -> Option<String> {
    let mut children = root.children.iter();
    for expected in ["responseDate", "request"] {
        match children.next() {
            Some(child) if is_oai_element(child, expected) => {}
            child => return Some(describe_unexpected("OAI-PMH", expected, child)),
        }
    }
    let content: Vec<&Element> = children.collect();
    match content.as_slice() {
        [] => Some("neither an error nor an element of the verb".to_owned()),
        errors if errors.iter().all(|child| is_oai_element(child, "error")) => {
            errors.iter().find_map(|error| check_error_code(error))
        }
        [verb] if VERBS.iter().any(|name| is_oai_element(verb, name)) => check_element(verb),
        [first, ..] => Some(format!("<{}>, followed by {} elements", first.name, content.len() - 1)),
    }
}

fn is_oai_element(element: &Element, name: &str) -> bool {
    element.namespace == OAI && element.name == name
}

fn describe_unexpected(parent: &str, expected: &str, child: Option<&Element>) -> String {
    match child {
        Some(child) => format!("<{}> in <{parent}>, expected <{expected}>", child.name),
        None => format!("<{parent}> ends, expected <{expected}>"),
    }
}

fn check_error_code(error: &Element) -> Option<String> {
    let code = error.attribute("code").unwrap_or_default();
    (!CODES.contains(&code)).then(|| format!("the unknown error code \"{code}\""))
}

fn check_element(parent: &Element) -> Option<String> {
    if matches!(parent.name.as_str(), "metadata" | "about" | "description" | "setDescription") {
        return check_wrapper(parent);
    }
    let Some(sequence) = allowed_children(&parent.name) else { return check_text_element(parent) };
    if !parent.text.trim().is_empty() {
        return Some(format!("text in <{}>", parent.name));
    }
    let mut children = parent.children.iter().peekable();
    for (name, least, most) in sequence {
        let mut count = 0;
        while let Some(child) = children.next_if(|child| count < *most && is_oai_element(child, name)) {
            count += 1;
            if let Some(complaint) = check_element(child) {
                return Some(complaint);
            }
        }
        if count < *least {
            return Some(describe_unexpected(&parent.name, name, children.peek().copied()));
        }
    }
    if let Some(child) = children.next() {
        return Some(format!("<{}> in <{}>, where it is not allowed", child.name, parent.name));
    }
    let status = if parent.name == "header" { parent.attribute("status") } else { None };
    status
        .filter(|status| *status != "deleted")
        .map(|status| format!("the unknown header status \"{status}\""))
}

/// Checks an element that wraps one element of another namespace.
fn check_wrapper(parent: &Element) -> Option<String> {
    let name = &parent.name;
    match parent.children.as_slice() {
        _ if !parent.text.trim().is_empty() => Some(format!("text in <{name}>")),
        [child] if child.namespace == OAI => Some(format!("<{}> of OAI-PMH in <{name}>", child.name)),
        [child] if child.namespace.is_empty() => {
            Some(format!("<{}> without namespace in <{name}>", child.name))
        }
        [_] => None,
        children => Some(format!("{} elements in <{name}>, expected one", children.len())),
    }
}

/// Checks an element that contains only text.
fn check_text_element(parent: &Element) -> Option<String> {
    let Element { name, text, children, .. } = parent;
    if let Some(child) = children.first() {
        return Some(format!("<{}> in <{name}>, which contains only text", child.name));
    }
    let is_legal = match name.as_str() {
        "setSpec" => text.split(':').all(is_token),
        "metadataPrefix" => is_token(text),
        "identifier" => !text.trim().is_empty(),
        // These types are strings, in which blanks count. Rules of their own judge the values.
        "protocolVersion" | "adminEmail" | "deletedRecord" | "granularity" => text.trim() == text,
        _ => true,
    };
    (!is_legal).then(|| format!("the illegal {name} \"{text}\""))
}

/// Whether a text consists of the characters that setSpec and metadataPrefix allow.
fn is_token(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    !text.is_empty() && text.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[track_caller]
    fn check(content: &str, expected: &str) {
        let xml = format!("<OAI-PMH xmlns='{OAI}'><responseDate/><request/>{content}</OAI-PMH>");
        let root = tree::parse(xml.as_bytes()).expect("it is well-formed");
        assert_eq!(find_violation(&root).unwrap_or_default(), expected, "{content}");
    }

    #[test]
    fn valid_responses_pass() {
        check("<error code='badVerb'/><error code='badArgument'/>", "");
        let header =
            "<header status='deleted'><identifier>x</identifier><datestamp/><setSpec>a:b</setSpec></header>";
        check(&format!("<ListIdentifiers>{header}{header}<resumptionToken/></ListIdentifiers>"), "");
        let record = format!("<record>{header}<metadata><x xmlns='urn:x'/></metadata></record>");
        check(&format!("<GetRecord>{record}</GetRecord>"), "");
        check("<ListSets><set><setSpec>a</setSpec><setName/></set></ListSets>", "");
    }

    #[test]
    fn violations_are_named() {
        check("", "neither an error nor an element of the verb");
        check("<error code='gone'/>", "the unknown error code \"gone\"");
        check("<error code='badVerb'/><ListSets/>", "<error>, followed by 1 elements");
        check("<ListSets/>", "<ListSets> ends, expected <set>");
        check("<ListSets>x</ListSets>", "text in <ListSets>");
        check("<ListSets><set><setName/></set></ListSets>", "<setName> in <set>, expected <setSpec>");
        check(
            "<ListSets><set><setSpec>a b</setSpec><setName/></set></ListSets>",
            "the illegal setSpec \"a b\"",
        );
        let identify = "<repositoryName/><baseURL> u </baseURL><protocolVersion>2.0\n</protocolVersion>";
        check(&format!("<Identify>{identify}</Identify>"), "the illegal protocolVersion \"2.0\n\"");
        let header = "<header><identifier>x</identifier><datestamp/></header>";
        for (metadata, expected) in [
            ("<metadata/>", "0 elements in <metadata>, expected one"),
            ("<metadata>x</metadata>", "text in <metadata>"),
            ("<metadata><x/></metadata>", "<x> of OAI-PMH in <metadata>"),
            ("<metadata><x xmlns=''/></metadata>", "<x> without namespace in <metadata>"),
            ("<metadata><x xmlns='u'/></metadata><other/>", "<other> in <record>, where it is not allowed"),
        ] {
            check(&format!("<GetRecord><record>{header}{metadata}</record></GetRecord>"), expected);
        }
        let illegal = header.replace("<header>", "<header status='gone'>");
        check(&format!("<ListIdentifiers>{illegal}</ListIdentifiers>"), "the unknown header status \"gone\"");
    }
}
