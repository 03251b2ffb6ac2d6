//! Makes an element independent of the elements around it.
//!
//! XML::Tape and other readers cut a record out of its tape, so each payload declares all namespaces that it uses. Pure.

use memchr::memmem;
use oaimend_repository::rebase_namespaces::{NamespaceScope, declare};
use oaimend_repository::xml::{XmlError, XmlEvent, XmlReader};

/// The element with declarations for all namespaces that it uses from `scope`, which are declared around it.
///
/// A prefix counts as used if the text contains it with a colon, because attribute values and texts can contain names
/// too.
///
/// # Errors
///
/// The text is not well-formed, as far as it is read.
pub(crate) fn self_contained(element: &str, scope: &NamespaceScope) -> Result<String, XmlError> {
    let mut reader = XmlReader::new(element);
    let (name_end, declared) = loop {
        match reader.read()? {
            Some(XmlEvent::Start(tag)) => {
                break (reader.span().start + 1 + tag.name().len(), tag.declarations());
            }
            Some(_) => {}
            None => return Ok(element.to_owned()),
        }
    };
    let is_declared = |prefix: &str| declared.iter().any(|(known, _)| known == prefix);
    let mut declarations = String::new();
    for (prefix, uri) in scope.prefixes() {
        let name = format!("{prefix}:");
        if !is_declared(prefix) && memmem::find(element.as_bytes(), name.as_bytes()).is_some() {
            declare(prefix, uri, &mut declarations);
        }
    }
    if !is_declared("") && uses_default(element)? {
        declare("", scope.uri("").unwrap_or_default(), &mut declarations);
    }
    if declarations.is_empty() {
        return Ok(element.to_owned());
    }
    let (before, after) = element.split_at_checked(name_end).unwrap_or((element, ""));
    Ok(format!("{before}{declarations}{after}"))
}

/// Whether an element without a prefix takes its namespace from the declarations around the text.
fn uses_default(element: &str) -> Result<bool, XmlError> {
    let mut reader = XmlReader::new(element);
    // The depth of the outermost element that declares a default namespace.
    let mut declared_at = usize::MAX;
    while let Some(event) = reader.read()? {
        match event {
            XmlEvent::Start(tag) if declared_at == usize::MAX => {
                if tag.declarations().iter().any(|(prefix, _)| prefix.is_empty()) {
                    declared_at = reader.depth();
                } else if tag.prefix().is_empty() {
                    return Ok(true);
                }
            }
            XmlEvent::End(_) if reader.depth() == declared_at => declared_at = usize::MAX,
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_gets_the_declarations_that_it_uses() {
        let scope = NamespaceScope::parse("<r xmlns='d' xmlns:dc='u:dc' xmlns:t=\"u:t\">");
        for (from, to) in [
            ("<a/>", "<a xmlns=\"d\"/>"),
            ("<a xmlns='e'><b/></a>", "<a xmlns='e'><b/></a>"),
            ("<dc:a/>", "<dc:a xmlns:dc=\"u:dc\"/>"),
            ("<x:a xmlns:x='x' k='t:name'/>", "<x:a xmlns:t=\"u:t\" xmlns:x='x' k='t:name'/>"),
            ("<x:a xmlns:x='x'><b xmlns='e'><c/></b></x:a>", "<x:a xmlns:x='x'><b xmlns='e'><c/></b></x:a>"),
            (
                "<x:a xmlns:x='x'><b xmlns='e'/><c/></x:a>",
                "<x:a xmlns=\"d\" xmlns:x='x'><b xmlns='e'/><c/></x:a>",
            ),
            ("<!-- c --><a/>", "<!-- c --><a xmlns=\"d\"/>"),
        ] {
            assert_eq!(self_contained(from, &scope).as_deref(), Ok(to));
        }
        assert_eq!(self_contained("<a/>", &NamespaceScope::default()).as_deref(), Ok("<a xmlns=\"\"/>"));
        assert!(
            self_contained("<x:a xmlns:x='x'><b></x:a>", &NamespaceScope::default())
                .is_ok_and(|text| text.contains("xmlns=\"\""))
        );
        assert!(self_contained("<x:a xmlns:x='x'></a>", &scope).is_err());
    }
}
