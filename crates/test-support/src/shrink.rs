//! Makes a failing input smaller and easier to read.

/// The smallest failing input found: leaves out ever smaller pieces while the failure stays. The
/// effort is limited, because a debug build of the engine is slow.
pub fn shrink(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut smallest = input.to_vec();
    let mut tries = 0;
    let mut size = smallest.len().div_ceil(2).max(1);
    while size >= 1 && tries < 3_000 {
        let mut at = 0;
        let mut smaller_found = false;
        while at < smallest.len() && tries < 3_000 {
            let end = (at + size).min(smallest.len());
            let mut candidate = smallest[..at].to_vec();
            candidate.extend_from_slice(&smallest[end..]);
            tries += 1;
            if fails(&candidate) {
                smallest = candidate;
                smaller_found = true;
            } else {
                at = end;
            }
        }
        if size == 1 && !smaller_found {
            break;
        }
        size = if smaller_found { size } else { size / 2 };
        size = size.min(smallest.len().max(1));
    }
    smallest
}
