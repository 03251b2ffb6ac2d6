//! Kinds of numbers, and truth values.

use super::{Entry, Kind};
use serde_json::json;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::Value;
use toml::de::DeValue;

/// `true` or `false`.
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, entry: &Entry<'_, '_>) -> Option<bool> {
        let value = entry.value().as_bool();
        if value.is_none() {
            entry.report_wrong_type("true or false");
        }
        value
    }

    fn write(&self, value: &bool) -> Option<Value> {
        Some(Value::from(*value))
    }

    fn schema(&self) -> serde_json::Value {
        json!({ "type": "boolean" })
    }
}

/// A whole number in a range.
pub(crate) struct Number<V> {
    range: RangeInclusive<u64>,
    from: fn(u64) -> Option<V>,
    to: fn(&V) -> u64,
}

/// A count or a size.
pub(crate) fn whole<V: Copy + TryFrom<u64> + TryInto<u64>>(range: RangeInclusive<u64>) -> Number<V> {
    Number {
        range,
        from: |number| V::try_from(number).ok(),
        to: |&value| value.try_into().unwrap_or(u64::MAX),
    }
}

/// A time in whole seconds.
pub(crate) fn seconds(range: RangeInclusive<u64>) -> Number<Duration> {
    Number { range, from: |number| Some(Duration::from_secs(number)), to: Duration::as_secs }
}

/// A time in milliseconds.
pub(crate) fn millis(range: RangeInclusive<u64>) -> Number<Duration> {
    Number {
        range,
        from: |number| Some(Duration::from_millis(number)),
        to: |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
    }
}

/// A number of requests; `None` is 0, which means no limit.
pub(crate) fn requests(range: RangeInclusive<u64>) -> Number<Option<NonZeroU32>> {
    Number {
        range,
        from: |number| u32::try_from(number).ok().map(NonZeroU32::new),
        to: |requests| requests.map_or(0, |requests| u64::from(requests.get())),
    }
}

impl<V> Kind for Number<V> {
    type Value = V;

    fn read(&self, entry: &Entry<'_, '_>) -> Option<V> {
        let expected = format!("a whole number from {} to {}", self.range.start(), self.range.end());
        let DeValue::Integer(integer) = entry.value() else {
            entry.report_wrong_type(&expected);
            return None;
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if self.range.contains(&number) => (self.from)(number),
            _ => {
                entry.report_out_of_range(&expected);
                None
            }
        }
    }

    /// A number outside the range, such as no limit where 0 is not allowed, is the absence of the key.
    fn write(&self, value: &V) -> Option<Value> {
        let number = (self.to)(value);
        let is_written = self.range.contains(&number);
        is_written.then(|| Value::from(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn schema(&self) -> serde_json::Value {
        json!({ "type": "integer", "minimum": self.range.start(), "maximum": self.range.end() })
    }
}

/// A number in a range, with or without a fraction.
pub(crate) enum Decimals {
    /// From the first number up to, but not including, the second one.
    FromToLessThan(f64, f64),
    /// More than the first number, and the second one at most.
    AboveUpTo(f64, f64),
}

impl Decimals {
    fn contains(&self, number: f64) -> bool {
        match *self {
            Self::FromToLessThan(min, end) => (min..end).contains(&number),
            Self::AboveUpTo(limit, max) => number > limit && number <= max,
        }
    }

    fn expected(&self) -> String {
        match self {
            Self::FromToLessThan(min, end) => format!("a number from {min} to less than {end}"),
            Self::AboveUpTo(limit, max) => format!("a number above {limit}, up to {max}"),
        }
    }
}

impl Kind for Decimals {
    type Value = f64;

    fn read(&self, entry: &Entry<'_, '_>) -> Option<f64> {
        let number = match entry.value() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => {
                i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|whole| whole as f64)
            }
            _ => {
                entry.report_wrong_type(&self.expected());
                return None;
            }
        };
        let number = number.filter(|&number| self.contains(number));
        if number.is_none() {
            entry.report_out_of_range(&self.expected());
        }
        number
    }

    fn write(&self, value: &f64) -> Option<Value> {
        Some(Value::from(*value))
    }

    fn schema(&self) -> serde_json::Value {
        match self {
            Self::FromToLessThan(min, end) => {
                json!({ "type": "number", "minimum": min, "exclusiveMaximum": end })
            }
            Self::AboveUpTo(limit, max) => {
                json!({ "type": "number", "exclusiveMinimum": limit, "maximum": max })
            }
        }
    }
}
