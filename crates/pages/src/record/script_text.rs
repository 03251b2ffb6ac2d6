//! JSON in a `script` element of a page.

use serde_json::Value;

/// JSON that can be written into a `script` element: it contains no `<`, so neither `</script>` nor `<!--` can end or
/// change the element.
pub(crate) fn script_text(value: &Value) -> String {
    let json = value.to_string();
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)))
            }
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_in_a_record_ends_the_script_element() {
        let title = "</script><!-- <SCRIPT> ]]> &lt; \u{2028} \" \\";
        let json = json!({ "name": title });
        let text = script_text(&json);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("it is JSON"), json);
    }
}
