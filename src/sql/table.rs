//! The name of the table, always with its schema and in quotes.

use crate::lease::Invalid;

/// The longest identifier that PostgreSQL keeps whole (`NAMEDATALEN - 1`); a longer one is cut, and two tables could
/// become one.
const IDENTIFIER_MAX_BYTES: usize = 63;

/// The table, always with its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    schema: String,
    name: String,
}

impl Table {
    /// Reads `schema.table`, or a bare name for a table in `public`.
    ///
    /// # Errors
    /// An empty part, one that is too long or holds a NUL, more than one dot, or a schema of the server's own.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (schema, name) = text.split_once('.').unwrap_or(("public", text));
        for part in [schema, name] {
            if part.is_empty() || part.contains(['\0', '.']) {
                return Err(Invalid::new(format!(
                    "{text:?} is not a table name (give schema.table, or a bare name for a table in public)"
                )));
            }
            if part.len() > IDENTIFIER_MAX_BYTES {
                return Err(Invalid::new(format!(
                    "{text:?} is too long (PostgreSQL keeps {IDENTIFIER_MAX_BYTES} bytes of a name)"
                )));
            }
        }
        // A table in pg_temp is gone with the connection that made it, and each operation has one of its own.
        if schema.starts_with("pg_") || schema == "information_schema" {
            return Err(Invalid::new(format!(
                "{text:?} is in {schema}, a schema of the server itself (name a table in another schema)"
            )));
        }
        Ok(Self {
            schema: schema.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The table that keeps its history.
    ///
    /// # Errors
    /// When the name would be too long.
    pub fn history(&self) -> Result<Self, Invalid> {
        const ENDING: &str = "_history";
        let name = format!("{}{ENDING}", self.name);
        if name.len() > IDENTIFIER_MAX_BYTES {
            return Err(Invalid::new(format!(
                "the name of {} is too long for a history beside it (at most {} bytes)",
                self.shown(),
                IDENTIFIER_MAX_BYTES - ENDING.len()
            )));
        }
        Ok(Self {
            schema: self.schema.clone(),
            name,
        })
    }

    /// The quoted schema.
    #[must_use]
    pub fn schema(&self) -> String {
        quote(&self.schema)
    }

    /// The schema for a message: quoted only if necessary.
    #[must_use]
    pub fn schema_shown(&self) -> String {
        quote_if_needed(&self.schema)
    }

    /// The table's own part of the name, as it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `"schema"."table"`, for a statement.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }

    /// The name for a message: quoted only if necessary.
    #[must_use]
    pub fn shown(&self) -> String {
        format!(
            "{}.{}",
            quote_if_needed(&self.schema),
            quote_if_needed(&self.name)
        )
    }
}

/// An identifier in quotes, as `quote_ident` writes it.
#[must_use]
pub fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

fn quote_if_needed(identifier: &str) -> String {
    let plain = !identifier.starts_with(|c: char| c.is_ascii_digit())
        && identifier
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if plain {
        identifier.to_owned()
    } else {
        quote(identifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_schema_and_a_name_and_both_are_quoted() {
        assert_eq!(
            Table::parse("lease").map(|t| t.quoted()),
            Ok(r#""public"."lease""#.to_owned())
        );
        assert_eq!(
            Table::parse(r#"My Jobs.le"ase"#).map(|t| t.quoted()),
            Ok(r#""My Jobs"."le""ase""#.to_owned())
        );
        assert_eq!(
            Table::parse("public.lease").map(|t| t.shown()),
            Ok("public.lease".to_owned())
        );
        for bad in ["", ".", "a.", ".b", "a.b.c", "a\0b", &"x".repeat(64)] {
            assert!(Table::parse(bad).is_err(), "{bad:?}");
        }
        // PostgreSQL keeps what begins with pg_ to itself, in lower case only.
        for bad in ["pg_temp", "pg_temp_3", "pg_catalog", "information_schema"] {
            assert!(Table::parse(&format!("{bad}.lease")).is_err(), "{bad:?}");
        }
        for good in ["pg_lease", "pgjobs.lease", "PG_jobs.lease"] {
            assert!(Table::parse(good).is_ok(), "{good:?}");
        }
    }
}
