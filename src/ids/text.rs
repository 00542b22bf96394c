//! What all ids that are texts can do.

/// `as_str`, `Debug`, `Display`, and reading by the named constructor.
macro_rules! text {
    ($type:ident, $read:ident) => {
        impl $type {
            /// As text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::ids::IdError;
            fn from_str(value: &str) -> Result<Self, Self::Err> {
                Self::$read(value)
            }
        }

        impl TryFrom<String> for $type {
            type Error = $crate::ids::IdError;
            fn try_from(value: String) -> Result<Self, Self::Error> {
                Self::$read(&value)
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.0.as_ref().into()
            }
        }
    };
}

pub(super) use text;
