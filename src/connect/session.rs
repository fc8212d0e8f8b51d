//! Whether a server is acceptable for `target_session_attrs`.

use postgres::{Client, SimpleQueryMessage};

use crate::fault::Fault;

use super::error::ConnectError;
use super::settings::Target;

/// Returns the connection if the server is acceptable.
pub(super) fn fits(mut client: Client, target: Target) -> Result<Client, ConnectError> {
    if target == Target::Any || target == Target::PreferStandby {
        return Ok(client);
    }
    // One round trip, which also works through a pooler in transaction mode.
    let rows = client
        .simple_query("SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')")
        .map_err(|e| ConnectError::of(&e))?;
    let answer = rows.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else {
            return None;
        };
        Some((row.get(0) == Some("t"), row.get(1) == Some("on")))
    });
    let Some((standby, read_only)) = answer else {
        return Err(ConnectError::new(
            Fault::Refused,
            "the server did not say whether it is a standby",
        ));
    };
    let why = match target {
        Target::ReadWrite if standby => "it is a standby and does not accept writes",
        Target::ReadWrite if read_only => "its transactions are read-only",
        Target::Primary if standby => {
            "it is a standby, and target_session_attrs requires a primary"
        }
        Target::ReadOnly if !(standby || read_only) => {
            "it accepts writes, and target_session_attrs requires a read-only server"
        }
        Target::Standby if !standby => {
            "it is a primary, and target_session_attrs requires a standby"
        }
        Target::Any
        | Target::PreferStandby
        | Target::ReadWrite
        | Target::ReadOnly
        | Target::Primary
        | Target::Standby => {
            return Ok(client);
        }
    };
    let fault = if standby || read_only {
        Fault::ReadOnly
    } else {
        Fault::Unreachable
    };
    Err(ConnectError::new(fault, why))
}
