//! Enums whose values have names: in configurations, URLs, logs, metrics, reports and files.
//!
//! [`named_enum!`](crate::named_enum) declares each value once, with its name and its documentation. The names are
//! a promise to users, so they are written out and not derived from the variants.

/// A value of an enum that [`named_enum!`](crate::named_enum) declares.
pub trait Named: Copy + 'static {
    /// All values, in the order of their declaration.
    const ALL: &'static [Self];

    /// The name of the value. Names are unique in an enum.
    fn name(self) -> &'static str;

    /// The value of that name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }

    /// All names for the text of an error, such as `expected "a", "b" or "c"`.
    fn expected() -> String {
        let mut text = "expected ".to_owned();
        for (index, value) in Self::ALL.iter().enumerate() {
            text.push_str(match index {
                0 => "",
                _ if index + 1 == Self::ALL.len() => " or ",
                _ => ", ",
            });
            text.push('"');
            text.push_str(value.name());
            text.push('"');
        }
        text
    }
}

/// Declares an enum whose values have names, with `ALL`, `name` and `from_name`. It implements
/// [`Named`](crate::Named), and derives at least `Clone` and `Copy`. After a semicolon, one more variant can wrap
/// another such enum: `NotOai(NotOai)`. Its values have the names of the wrapped ones.
///
/// ```
/// use oaimend_oai::{Named as _, named_enum};
///
/// named_enum! {
///     /// What a page promises about deletions.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     pub enum Deletions {
///         /// The repository forgets deleted records.
///         Forgotten = "no",
///         /// The repository lists deleted records for ever.
///         Kept = "persistent",
///     }
/// }
///
/// assert_eq!(Deletions::Kept.name(), "persistent");
/// assert_eq!(Deletions::from_name("no"), Some(Deletions::Forgotten));
/// assert_eq!(Deletions::expected(), r#"expected "no" or "persistent""#);
/// ```
#[macro_export]
macro_rules! named_enum {
    ($(#[$attribute:meta])* $visibility:vis enum $type:ident {
        $($(#[$variant_attribute:meta])* $variant:ident = $name:literal),+ $(,)?
    }) => {
        $(#[$attribute])*
        $visibility enum $type {
            $($(#[$variant_attribute])* $variant,)+
        }

        impl $type {
            /// All values, in the order of their declaration.
            $visibility const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name of the value.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

        }

        $crate::named_enum!(@read $visibility $type);
    };
    ($(#[$attribute:meta])* $visibility:vis enum $type:ident {
        $($(#[$variant_attribute:meta])* $variant:ident = $name:literal),+;
        $(#[$wrapper_attribute:meta])* $wrapper:ident($inner:ident) $(,)?
    }) => {
        $(#[$attribute])*
        $visibility enum $type {
            $($(#[$variant_attribute])* $variant,)+
            $(#[$wrapper_attribute])* $wrapper($inner),
        }

        impl $type {
            /// All values: the unit variants in the order of their declaration, then the wrapped values.
            $visibility const ALL: &'static [Self] = &{
                let units = [$(Self::$variant),+];
                let mut all = [units[0]; [$($name),+].len() + $inner::ALL.len()];
                let mut index = 0;
                while index < all.len() {
                    all[index] = if index < units.len() {
                        units[index]
                    } else {
                        Self::$wrapper($inner::ALL[index - units.len()])
                    };
                    index += 1;
                }
                all
            };

            /// The name of the value. A wrapped value has its own.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::$wrapper(value) => value.name(),
                }
            }
        }

        $crate::named_enum!(@read $visibility $type);
    };
    (@read $visibility:vis $type:ident) => {
        impl $type {
            /// The value of that name.
            $visibility fn from_name(name: &str) -> Option<Self> {
                <Self as $crate::Named>::from_name(name)
            }
        }

        impl $crate::Named for $type {
            const ALL: &'static [Self] = Self::ALL;

            fn name(self) -> &'static str {
                Self::name(self)
            }
        }
    };
}

/// Implements `Serialize` and `Deserialize` of serde by the names of a [`named_enum!`](crate::named_enum). The calling
/// crate depends on serde.
#[macro_export]
macro_rules! serde_by_name {
    ($type:ty) => {
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <::std::borrow::Cow<'de, str> as ::serde::Deserialize>::deserialize(deserializer)?;
                <Self as $crate::Named>::from_name(&name).ok_or_else(|| {
                    let expected = <Self as $crate::Named>::expected();
                    ::serde::de::Error::custom(format_args!("{name:?} is not known; {expected}"))
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::Named;

    crate::named_enum! {
        /// Documented.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        enum Colour {
            /// Documented too.
            #[default]
            Red = "red",
            DarkBlue = "blue.dark",
            Green = "Green",
        }
    }

    crate::serde_by_name!(Colour);

    crate::named_enum! {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Single { Only = "only" }
    }

    #[test]
    fn each_value_is_read_by_its_name() {
        assert_eq!(Colour::ALL, [Colour::Red, Colour::DarkBlue, Colour::Green]);
        for colour in Colour::ALL {
            assert_eq!(Colour::from_name(colour.name()), Some(*colour));
        }
        for unknown in ["", "Red", "red ", "darkblue", "green"] {
            assert_eq!(Colour::from_name(unknown), None, "{unknown}");
        }
        assert_eq!((Colour::default(), Colour::DarkBlue.name()), (Colour::Red, "blue.dark"));
    }

    #[test]
    fn a_value_is_stored_by_its_name() {
        let stored = r#"["red","blue.dark","Green"]"#;
        assert_eq!(serde_json::to_string(Colour::ALL).ok().as_deref(), Some(stored));
        assert_eq!(serde_json::from_str::<Vec<Colour>>(stored).ok().as_deref(), Some(Colour::ALL));
        // An escape is read into an owned text.
        assert_eq!(serde_json::from_str(r#""r\u0065d""#).ok(), Some(Colour::Red));
        let error = serde_json::from_str::<Colour>(r#""blue""#).map_err(|error| error.to_string());
        let expected = r#""blue" is not known; expected "red", "blue.dark" or "Green""#;
        assert!(error.as_ref().is_err_and(|error| error.starts_with(expected)), "{error:?}");
    }

    #[test]
    fn an_error_lists_all_names() {
        assert_eq!(Colour::expected(), r#"expected "red", "blue.dark" or "Green""#);
        assert_eq!(Single::expected(), r#"expected "only""#);
        assert_eq!(Single::from_name("only"), Some(Single::Only));
    }
}
