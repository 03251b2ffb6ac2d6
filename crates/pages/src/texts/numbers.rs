//! Numbers as people read them.

/// A number with a comma between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun in singular or plural.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A share as a percentage; `None` if there is no whole.
pub(crate) fn share(part: u64, whole: u64) -> Option<String> {
    if whole == 0 {
        return None;
    }
    let per_mille = u128::from(part) * 1_000 / u128::from(whole);
    Some(match (part, per_mille) {
        (0, _) => "0 %".to_owned(),
        (_, 0) => "< 0.1 %".to_owned(),
        (_, 1_000) => "100 %".to_owned(),
        (_, per_mille) => format!("{}.{} %", per_mille / 10, per_mille % 10),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(counted(1, "day", "days") + &counted(2, "day", "days"), "1 day2 days");
        for (part, whole, text) in
            [(0, 5, "0 %"), (1, 9_999, "< 0.1 %"), (1, 80, "1.2 %"), (5, 5, "100 %"), (999, 1_000, "99.9 %")]
        {
            assert_eq!(share(part, whole).as_deref(), Some(text));
        }
        assert_eq!(share(0, 0), None);
    }
}
