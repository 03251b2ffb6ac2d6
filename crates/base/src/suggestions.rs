//! What the user probably meant by an unknown name.

/// Finds the known name that the user probably meant.
pub fn find_nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let distance = |other: &str| strsim::levenshtein(&lower, &other.replace('-', "_"));
    let near = known.iter().min_by_key(|other| distance(other))?;
    (distance(near) <= 1 + near.len() / 4 || near.starts_with(&format!("{lower}_"))).then_some(near)
}

/// The ids that can be written in place of an unknown one. Of many, the first ones and the most similar one.
pub fn suggest_ids(unknown: &str, known: &[&str]) -> String {
    if known.len() <= IDS_SHOWN_MAX {
        return known.join(", ");
    }
    let first = known.get(..IDS_SHOWN_MAX).unwrap_or_default().join(", ");
    let near =
        find_nearest(unknown, known).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
    format!("{first} and {} more{near}", known.len() - IDS_SHOWN_MAX)
}

/// Maximum number of ids in a message.
const IDS_SHOWN_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_ids_are_shortened() {
        assert_eq!(suggest_ids("z", &["x", "y"]), "x, y");
        let ids: Vec<String> = (0..1000).map(|number| format!("repository{number:03}")).collect();
        let known: Vec<&str> = ids.iter().map(String::as_str).collect();
        let shown = suggest_ids("repositry007", &known);
        assert!(shown.ends_with("repository009 and 990 more (did you mean repository007?)"), "{shown}");
        let shown = suggest_ids("unlike", &known);
        assert!(
            shown.starts_with("repository000, ") && shown.ends_with("repository009 and 990 more"),
            "{shown}"
        );
    }
}
