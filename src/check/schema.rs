//! The structure of a response as OAI-PMH.xsd has it: which elements stand in
//! which, in which order and how often, and the values that the schema bounds.
//! What records carry inside `metadata` and `about` is not looked at.

use super::answer::OAI;
use super::tree::Element;

/// Which child may stand where, how often at least and at most.
type Sequence = &'static [(&'static str, usize, usize)];

const MANY: usize = usize::MAX;

/// The children of an element of the envelope; `None`: it holds text alone.
fn sequence_of(name: &str) -> Option<Sequence> {
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

/// The first thing that the schema would not let pass.
pub(super) fn complaint(root: &Element) -> Option<String> {
    let mut children = root.children.iter();
    for wanted in ["responseDate", "request"] {
        match children.next() {
            Some(child) if is(child, wanted) => {}
            child => return Some(instead("OAI-PMH", wanted, child)),
        }
    }
    let content: Vec<&Element> = children.collect();
    match content.as_slice() {
        [] => Some("neither an error nor an element of the verb".to_owned()),
        errors if errors.iter().all(|child| is(child, "error")) => {
            errors.iter().find_map(|error| code(error))
        }
        [verb] if VERBS.iter().any(|name| is(verb, name)) => element(verb),
        [first, ..] => Some(format!("<{}> and {} elements behind it", first.name, content.len() - 1)),
    }
}

fn is(element: &Element, name: &str) -> bool {
    element.namespace == OAI && element.name == name
}

fn instead(parent: &str, wanted: &str, child: Option<&Element>) -> String {
    match child {
        Some(child) => format!("<{}> in <{parent}> where <{wanted}> is wanted", child.name),
        None => format!("<{parent}> ends where <{wanted}> is wanted"),
    }
}

fn code(error: &Element) -> Option<String> {
    let code = error.attribute("code").unwrap_or_default();
    (!CODES.contains(&code)).then(|| format!("the error code \"{code}\", which is none of the eight"))
}

fn element(parent: &Element) -> Option<String> {
    if matches!(parent.name.as_str(), "metadata" | "about" | "description" | "setDescription") {
        return wrapper(parent);
    }
    let Some(sequence) = sequence_of(&parent.name) else { return leaf(parent) };
    if !parent.text.trim().is_empty() {
        return Some(format!("text in <{}>", parent.name));
    }
    let mut children = parent.children.iter().peekable();
    for (name, least, most) in sequence {
        let mut count = 0;
        while let Some(child) = children.next_if(|child| count < *most && is(child, name)) {
            count += 1;
            if let Some(complaint) = element(child) {
                return Some(complaint);
            }
        }
        if count < *least {
            return Some(instead(&parent.name, name, children.peek().copied()));
        }
    }
    if let Some(child) = children.next() {
        return Some(format!("<{}> in <{}>, where it has no place", child.name, parent.name));
    }
    let status = parent.attribute("status").filter(|_| parent.name == "header");
    status.filter(|status| *status != "deleted").map(|status| format!("the status \"{status}\" of a header"))
}

/// An element that wraps one of another namespace.
fn wrapper(parent: &Element) -> Option<String> {
    let name = &parent.name;
    match parent.children.as_slice() {
        _ if !parent.text.trim().is_empty() => Some(format!("text in <{name}>")),
        [child] if child.namespace == OAI => Some(format!("<{}> of OAI-PMH in <{name}>", child.name)),
        [child] if child.namespace.is_empty() => {
            Some(format!("<{}> without namespace in <{name}>", child.name))
        }
        [_] => None,
        children => Some(format!("{} elements in <{name}>, one is wanted", children.len())),
    }
}

/// An element that holds a text.
fn leaf(parent: &Element) -> Option<String> {
    let Element { name, text, children, .. } = parent;
    if let Some(child) = children.first() {
        return Some(format!("<{}> in <{name}>, which holds text", child.name));
    }
    let is_legal = match name.as_str() {
        "setSpec" => text.split(':').all(is_token),
        "metadataPrefix" => is_token(text),
        "identifier" => !text.trim().is_empty(),
        _ => true,
    };
    (!is_legal).then(|| format!("the {name} \"{text}\""))
}

/// Characters that may stand in a setSpec and in a metadataPrefix.
fn is_token(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    !text.is_empty() && text.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;

    #[track_caller]
    fn check(content: &str, expected: &str) {
        let xml = format!("<OAI-PMH xmlns='{OAI}'><responseDate/><request/>{content}</OAI-PMH>");
        let root = tree::read(xml.as_bytes()).expect("it is well-formed");
        assert_eq!(complaint(&root).unwrap_or_default(), expected, "{content}");
    }

    #[test]
    fn what_the_schema_lets_pass_passes() {
        check("<error code='badVerb'/><error code='badArgument'/>", "");
        let header =
            "<header status='deleted'><identifier>x</identifier><datestamp/><setSpec>a:b</setSpec></header>";
        check(&format!("<ListIdentifiers>{header}{header}<resumptionToken/></ListIdentifiers>"), "");
        let record = format!("<record>{header}<metadata><x xmlns='urn:x'/></metadata></record>");
        check(&format!("<GetRecord>{record}</GetRecord>"), "");
        check("<ListSets><set><setSpec>a</setSpec><setName/></set></ListSets>", "");
    }

    #[test]
    fn what_it_does_not_is_named() {
        check("", "neither an error nor an element of the verb");
        check("<error code='gone'/>", "the error code \"gone\", which is none of the eight");
        check("<error code='badVerb'/><ListSets/>", "<error> and 1 elements behind it");
        check("<ListSets/>", "<ListSets> ends where <set> is wanted");
        check("<ListSets>x</ListSets>", "text in <ListSets>");
        check("<ListSets><set><setName/></set></ListSets>", "<setName> in <set> where <setSpec> is wanted");
        check("<ListSets><set><setSpec>a b</setSpec><setName/></set></ListSets>", "the setSpec \"a b\"");
        let header = "<header><identifier>x</identifier><datestamp/></header>";
        for (metadata, expected) in [
            ("<metadata/>", "0 elements in <metadata>, one is wanted"),
            ("<metadata>x</metadata>", "text in <metadata>"),
            ("<metadata><x/></metadata>", "<x> of OAI-PMH in <metadata>"),
            ("<metadata><x xmlns=''/></metadata>", "<x> without namespace in <metadata>"),
            ("<metadata><x xmlns='u'/></metadata><other/>", "<other> in <record>, where it has no place"),
        ] {
            check(&format!("<GetRecord><record>{header}{metadata}</record></GetRecord>"), expected);
        }
        let odd = header.replace("<header>", "<header status='gone'>");
        check(&format!("<ListIdentifiers>{odd}</ListIdentifiers>"), "the status \"gone\" of a header");
    }
}
